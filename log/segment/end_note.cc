#include "log/segment/end_note.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "log/file/aligned_buffer.h"
#include "log/file/damage.h"
#include "log/file/kill_point.h"
#include "log/format/crc32c.h"
#include "log/format/little_endian.h"

namespace gannet::log {
namespace {

constexpr uint64_t kMagic = 0x31444e45544e4e47;  // "GNNTEND1"
constexpr uint32_t kVersion = 3;
constexpr uint32_t kFirstNoteWithDatabase = 2;
constexpr uint32_t kFirstVersionWithRun = 3;
constexpr size_t kSlots = 2;
constexpr int kReadAttempts = 5;

// Byte positions; docs/log_format.md has the same as a table.
namespace at {
constexpr size_t kMagicWord = 0;
constexpr size_t kCrc = 8;
constexpr size_t kVersionWord = 12;
constexpr size_t kSequence = 16;
constexpr size_t kSegment = 24;
constexpr size_t kOffset = 32;
constexpr size_t kNextBatch = 40;
constexpr size_t kRun = 48;
constexpr size_t kClosedEpoch = 56;
constexpr size_t kNode = 64;
constexpr size_t kNumNodes = 66;
constexpr size_t kEnd = 68;
constexpr size_t kDatabase = 72;  // from version 2 on
constexpr size_t kEndWithDatabase = 88;
constexpr size_t kRunIdentity = 88;        // from version 3 on
constexpr size_t kSequenceAtTheEnd = 104;  // the same as kSequence
constexpr size_t kEndWithRun = 112;
}  // namespace at

std::string PathOf(const std::string& directory) {
  return absl::StrCat(directory, "/", kEndNoteName);
}

struct Newest {
  EndNote note;
  uint64_t sequence = 0;
  std::string doubt{};  // what is wrong with the other block, which does not count
};

enum class Other { kEmpty, kOlder, kTorn, kDamaged };

// Judges the invalid block next to a valid note with the number `sequence`. kOlder: the note before, damaged, or just
// begun to be replaced.
Other JudgeInvalid(std::span<const std::byte, kEndNoteBytes> block, uint64_t sequence) {
  if (AllZero(block)) return sequence == kSlots ? Other::kEmpty : Other::kDamaged;  // Make begins with kSlots
  const auto first = LoadLittle<uint64_t>(&block[at::kSequence]);
  const auto last = LoadLittle<uint64_t>(&block[at::kSequenceAtTheEnd]);
  const bool has_last = LoadLittle<uint32_t>(&block[at::kVersionWord]) >= kFirstVersionWithRun;
  if (last == sequence + 1) return Other::kDamaged;
  if (first == sequence + 1) return has_last ? Other::kTorn : Other::kDamaged;
  return first + 1 == sequence || (first == 0 && sequence == kSlots) ? Other::kOlder : Other::kDamaged;
}

Status Damaged(const std::string& path, size_t offset, absl::string_view why) {
  return absl::DataLossError(absl::StrCat(path, " is damaged at offset ", offset, ": ", why,
                                          "; it is unknown whether the end of the log is there", kDamageAdvice));
}

// The newest of the notes in `slots`.
StatusOr<Newest> FindNewest(const std::string& path, std::span<const std::byte> slots) {
  if (slots.size() < kSlots * kEndNoteBytes) return Damaged(path, slots.size(), "it is too short");
  std::optional<Newest> newest;
  Status why;
  size_t invalid = kSlots;
  for (size_t slot = 0; slot < kSlots; ++slot) {
    uint64_t sequence = 0;
    const StatusOr<EndNote> note =
        EndNote::Decode(slots.subspan(slot * kEndNoteBytes).first<kEndNoteBytes>(), &sequence);
    if (absl::IsInvalidArgument(note.status()))
      return Status(note.status().code(), absl::StrCat(path, ": ", note.status().message()));
    if (!note.ok()) {
      why = note.status();
      invalid = slot;
    } else if (!newest.has_value() || sequence > newest->sequence) {
      newest = Newest{*note, sequence};
    }
  }
  if (invalid == kSlots) return *newest;
  const size_t offset = invalid * kEndNoteBytes;
  if (!newest.has_value()) return Damaged(path, offset, why.message());
  switch (JudgeInvalid(slots.subspan(offset).first<kEndNoteBytes>(), newest->sequence)) {
    case Other::kEmpty:
      break;
    case Other::kOlder:
      newest->doubt = absl::StrCat(why.message(), ". It has the note before the newest, which is not needed");
      break;
    case Other::kTorn:
      newest->doubt =
          "the newest note is not complete, as a crash leaves it on persistent memory. The one before counts";
      break;
    case Other::kDamaged:
      return Damaged(path, offset, why.message());
  }
  return *newest;
}

StatusOr<Newest> ReadNewest(FileSystem& files, const std::string& directory) {
  const std::string path = PathOf(directory);
  StatusOr<std::unique_ptr<File>> file = files.Open(path, OpenMode::kRead);
  if (!file.ok()) return file.status();
  AlignedBuffer slots(kSlots * kEndNoteBytes);
  StatusOr<Newest> newest = absl::InternalError("not tried");
  // A running log may write one note, and then the other one, during the read.
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    const StatusOr<size_t> got = (*file)->Read(0, slots.span());
    if (!got.ok()) return got.status();
    newest = FindNewest(path, slots.span().first(*got));
    if (!absl::IsDataLoss(newest.status())) break;
  }
  return newest;
}

// True if the log reaches at least as far as `before` says. A note that said less would hide that its end was lost.
bool ReachesAsFar(const EndNote& note, const EndNote& before) {
  const bool later = note.segment > before.segment || (note.segment == before.segment && note.offset >= before.offset);
  return later && note.run >= before.run && note.next_batch >= before.next_batch &&
         note.closed_epoch >= before.closed_epoch;
}

}  // namespace

void EndNote::Encode(uint64_t sequence, std::span<std::byte, kEndNoteBytes> to) const {
  std::fill(to.begin(), to.end(), std::byte{0});
  StoreLittle(&to[at::kMagicWord], kMagic);
  StoreLittle(&to[at::kVersionWord], kVersion);
  StoreLittle(&to[at::kSequence], sequence);
  StoreLittle(&to[at::kSegment], segment);
  StoreLittle(&to[at::kOffset], offset);
  StoreLittle(&to[at::kNextBatch], next_batch);
  StoreLittle(&to[at::kRun], run);
  StoreLittle(&to[at::kClosedEpoch], closed_epoch);
  StoreLittle(&to[at::kNode], node);
  StoreLittle(&to[at::kNumNodes], num_nodes);
  StoreIdentity(&to[at::kDatabase], database);
  StoreIdentity(&to[at::kRunIdentity], run_identity);
  StoreLittle(&to[at::kSequenceAtTheEnd], sequence);
  StoreLittle(&to[at::kCrc], Crc32c(to.subspan<at::kVersionWord>()));
}

StatusOr<EndNote> EndNote::Decode(std::span<const std::byte, kEndNoteBytes> from, uint64_t* sequence) {
  if (LoadLittle<uint64_t>(&from[at::kMagicWord]) != kMagic)
    return absl::DataLossError("it does not begin as the note of a log's end does");
  if (LoadLittle<uint32_t>(&from[at::kCrc]) != Crc32c(from.subspan<at::kVersionWord>()))
    return absl::DataLossError("the checksum does not match");
  const auto version = LoadLittle<uint32_t>(&from[at::kVersionWord]);
  if (version == 0 || version > kVersion) {
    return absl::InvalidArgumentError(absl::StrCat("the note of the log's end has version ", version,
                                                   ", this program knows versions up to ", kVersion,
                                                   ": use the version of Gannet that wrote it, or a newer one"));
  }
  const bool has_database = version >= kFirstNoteWithDatabase;
  const bool has_run = version >= kFirstVersionWithRun;
  const size_t end = has_run ? at::kEndWithRun : has_database ? at::kEndWithDatabase : at::kDatabase;
  if (!AllZero(from.subspan(at::kEnd, at::kDatabase - at::kEnd)) || !AllZero(from.subspan(end)))
    return absl::DataLossError("it has bytes set that should be zero");
  *sequence = LoadLittle<uint64_t>(&from[at::kSequence]);
  if (has_run && LoadLittle<uint64_t>(&from[at::kSequenceAtTheEnd]) != *sequence)
    return absl::DataLossError("its two sequence numbers differ");
  return EndNote{.segment = LoadLittle<uint64_t>(&from[at::kSegment]),
                 .offset = LoadLittle<uint64_t>(&from[at::kOffset]),
                 .next_batch = LoadLittle<uint64_t>(&from[at::kNextBatch]),
                 .run = LoadLittle<uint64_t>(&from[at::kRun]),
                 .closed_epoch = LoadLittle<uint64_t>(&from[at::kClosedEpoch]),
                 .node = LoadLittle<uint16_t>(&from[at::kNode]),
                 .num_nodes = LoadLittle<uint16_t>(&from[at::kNumNodes]),
                 .database = has_database ? LoadIdentity(&from[at::kDatabase]) : Identity{},
                 .run_identity = has_run ? LoadIdentity(&from[at::kRunIdentity]) : Identity{}};
}

StatusOr<EndNote> ReadEndNote(FileSystem& files, const std::string& directory, std::string* doubt) {
  StatusOr<Newest> newest = ReadNewest(files, directory);
  if (!newest.ok()) return newest.status();
  if (doubt != nullptr) *doubt = std::move(newest->doubt);
  return newest->note;
}

Status EndNoteFile::Write(const EndNote& note) {
  if (file_ == nullptr) GANNET_RETURN_IF_ERROR(Open());
  if (written_ == note) return absl::OkStatus();
  GANNET_CHECK(
      !written_.has_value() || ReachesAsFar(note, *written_),
      "LOG-END: run %d, segment %d, offset %d, batch %d, epoch %d after run %d, segment %d, offset %d, batch %d, "
      "epoch %d",
      note.run, note.segment, note.offset, note.next_batch, note.closed_epoch, written_->run, written_->segment,
      written_->offset, written_->next_batch, written_->closed_epoch);
  if (file_ == nullptr) return Make(note);
  AlignedBuffer block(kEndNoteBytes);
  note.Encode(sequence_ + 1, block.span().first<kEndNoteBytes>());
  // After an error the content of this block is unknown. So the next attempt writes the same block, and the other block
  // keeps the note that was valid before.
  GANNET_RETURN_IF_ERROR(file_->WriteDurably((sequence_ + 1) % kSlots * kEndNoteBytes, block.span()));
  ++sequence_;
  written_ = note;
  MayDieHere(KillPoint::kLogEndNoted);
  return absl::OkStatus();
}

// A damaged file is left to Make, which replaces it.
Status EndNoteFile::Open() {
  const StatusOr<Newest> newest = ReadNewest(*files_, directory_);
  if (absl::IsNotFound(newest.status()) || absl::IsDataLoss(newest.status())) return absl::OkStatus();
  if (!newest.ok()) return newest.status();
  StatusOr<std::unique_ptr<File>> file = files_->Open(PathOf(directory_), OpenMode::kReuse);
  if (!file.ok()) return file.status();
  file_ = *std::move(file);
  sequence_ = newest->sequence;
  // A killed process may have left the name and the note in the page cache only. So the name is synced here, and the
  // first note of this run is always written.
  return files_->SyncDirectory(directory_);
}

// The file is written under another name first, so that the file always has a note.
Status EndNoteFile::Make(const EndNote& note) {
  const std::string path = PathOf(directory_);
  const std::string temporary = path + ".tmp";
  if (Status removed = files_->Remove(temporary); !removed.ok() && !absl::IsNotFound(removed)) return removed;
  StatusOr<std::unique_ptr<File>> file = files_->Open(temporary, OpenMode::kCreate);
  if (!file.ok()) return file.status();
  AlignedBuffer slots(kSlots * kEndNoteBytes);
  note.Encode(kSlots, slots.span().first<kEndNoteBytes>());
  Status made = (*file)->WriteDurably(0, slots.span());
  if (made.ok()) made = files_->Rename(temporary, path);
  if (!made.ok()) {
    files_->Remove(temporary).IgnoreError();
    return made;
  }
  (*file)->Renamed(path);
  GANNET_RETURN_IF_ERROR(files_->SyncDirectory(directory_));
  file_ = *std::move(file);
  sequence_ = kSlots;
  written_ = note;
  MayDieHere(KillPoint::kLogEndNoted);
  return absl::OkStatus();
}

}  // namespace gannet::log
