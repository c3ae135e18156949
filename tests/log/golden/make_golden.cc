// Makes the golden files of the current format version in an empty directory:
//   ninja -C build make_golden && build/tests/log/golden/make_golden tests/log/golden/v5
// Run once per format version. The files of older versions stay.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "log/checkpoint/checkpoint.h"
#include "log/file/simulated/faulty_file_system.h"
#include "tests/log/golden/golden_content.h"

namespace gannet::log {
namespace {

// A reused segment may contain old batches of a segment with a lower number where nothing new was written.
void FillWithOldContent(Image* image) {
  SegmentHeader old = FirstHeader(1);
  old.segment = 0;
  old.first_batch = 1;
  SegmentBuilder builder(old);
  builder.Add(1, {Simple(1, "of an earlier use of the file")});
  const auto block = builder.image().begin() + kSegmentHeaderBytes;
  for (size_t at = kSegmentHeaderBytes; at < image->size(); at += kDiskBlockBytes) {
    const auto place = image->begin() + static_cast<ptrdiff_t>(at);
    const bool free = std::all_of(place, place + kDiskBlockBytes, [](std::byte byte) { return byte == std::byte{0}; });
    if (free) std::copy_n(block, kDiskBlockBytes, place);
  }
}

void MakeLog(ImageFileSystem* files) {
  const auto batches = GoldenBatches(kMaxKeyBytes);
  SegmentHeader header = FirstHeader(4);
  header.num_nodes = 2;
  header.database = Identity::FromText(kGoldenDatabase);
  header.run_identity = Identity::FromText(kGoldenRuns[0]);
  SegmentBuilder first(header);
  first.Add(2, batches[0]);
  std::vector<TestTransaction> second = batches[1];
  second.push_back(Simple(5, "void: this epoch was not recovered"));
  first.Add(5, second);
  SegmentBuilder torn = first;
  const uint64_t at = torn.Add(6, {Simple(6, "torn")});
  torn.image()[at + kBatchHeaderBytes + 40] ^= std::byte{1};
  Put(files, &torn);
  files->files[PathOf(2)] = Image(2 * kDiskBlockBytes);

  header.segment = 3;
  header.run = 2;
  header.run_identity = Identity::FromText(kGoldenRuns[1]);
  header.previous_run_identity = Identity::FromText(kGoldenRuns[0]);
  header.first_batch = 3;
  header.previous_end = kSegmentHeaderBytes;
  header.recovered_epoch = 4;
  header.closed_epoch = 4;
  SegmentBuilder third(header);
  third.Add(7, batches[2]);
  third.Add(8, batches[3]);
  Put(files, &third);
  SegmentHeader reused = HeaderAfter(third);
  reused.reused = true;
  SegmentBuilder fourth(reused);
  fourth.Add(9, batches[4]);
  const uint64_t tail = fourth.Add(10, {Simple(10, std::string(5000, 't'))});
  std::fill_n(fourth.image().begin() + static_cast<ptrdiff_t>(tail) + kDiskBlockBytes, 512, std::byte{0});
  Put(files, &fourth);
  FillWithOldContent(&files->files[PathOf(4)]);
}

Status MakeCheckpoint(FaultyFileSystem* disk) {
  GANNET_RETURN_IF_ERROR(disk->MakeDirectory(kLogDirectory));
  Manifest manifest = GoldenManifest(kMaxKeyBytes);
  manifest.database = kGoldenDatabase;
  manifest.log_end = true;
  manifest.run = kGoldenRuns[1];
  auto writer =
      CheckpointWriter::Create(disk, kLogDirectory, Identity::FromText(kGoldenDatabase), kGoldenCheckpoint, 0);
  if (!writer.ok()) return writer.status();
  uint16_t table = 0;
  for (const GoldenRecord& record : GoldenRecords(kMaxKeyBytes)) {
    if (record.table != table) GANNET_RETURN_IF_ERROR((*writer)->BeginTable(record.table));
    table = record.table;
    GANNET_RETURN_IF_ERROR(
        (*writer)->Add({record.table, record.epoch, record.version, BytesOf(record.key), BytesOf(record.payload)}));
  }
  CheckpointDescription& checkpoint = manifest.checkpoints.emplace_back();
  GANNET_RETURN_IF_ERROR((*writer)->Finish(&checkpoint));
  checkpoint.begin_epoch = 3;
  checkpoint.end_epoch = 4;
  checkpoint.first_segment = 1;
  checkpoint.wall_nanos = 1'700'000'000'000'000'000;
  EndNoteFile note(disk, kLogDirectory);
  GANNET_RETURN_IF_ERROR(note.Write(GoldenNote(3, kGoldenDatabase, kGoldenRuns[1])));
  GANNET_RETURN_IF_ERROR(note.Write(GoldenNote(4, kGoldenDatabase, kGoldenRuns[1])));
  return WriteManifest(*disk, kLogDirectory, manifest);
}

Image ReadImage(FileSystem* disk, const std::string& path) {
  auto file = disk->Open(path, OpenMode::kRead).value();
  Image image(file->Size().value());
  GANNET_CHECK(file->Read(0, image).value() == image.size(), "%s", path);
  return image;
}

int Main(const std::filesystem::path& to) {
  if (std::filesystem::exists(to)) {
    std::cerr << to << " is there already; golden files are not made again\n";
    return 1;
  }
  ImageFileSystem files;
  MakeLog(&files);
  FaultyFileSystem disk(1);
  const Status made = MakeCheckpoint(&disk);
  GANNET_CHECK(made.ok(), "%s", made.ToString());
  const std::string checkpoint = CheckpointDirectory(kLogDirectory, kGoldenCheckpoint);
  const std::vector<std::string> names = disk.List(checkpoint).value();
  for (const std::string& name : names) {
    const std::string path = absl::StrCat(checkpoint, "/", name);
    files.files[path] = ReadImage(&disk, path);
  }
  for (const std::string name : {"MANIFEST", kEndNoteName}) {
    const std::string path = absl::StrCat(kLogDirectory, "/", name);
    files.files[path] = ReadImage(&disk, path);
  }
  for (const auto& [path, image] : files.files) {
    const std::filesystem::path target = to / path.substr(std::string(kLogDirectory).size() + 1);
    std::filesystem::create_directories(target.parent_path());
    std::ofstream(target, std::ios::binary)
        .write(reinterpret_cast<const char*>(image.data()), static_cast<std::streamsize>(image.size()));
  }
  return 0;
}

}  // namespace
}  // namespace gannet::log

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: make_golden DIRECTORY\n";
    return 2;
  }
  return gannet::log::Main(argv[1]);
}
