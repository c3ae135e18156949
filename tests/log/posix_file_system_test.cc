// Properties of the operating system's files: their description, and locks between processes.
#include "log/file/posix_file_system.h"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "log/file/aligned_buffer.h"
#include "log/file/disk_ring.h"
#include "log/file/pmem_file_system.h"
#include "log/file/posix_error.h"

namespace gannet::log {
namespace posix_file_system_test {

using testing::HasSubstr;
using testing::StartsWith;

class PosixFileSystemTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "gannet-posix-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static void WriteOneFile(FileSystem& files, const std::string& path) {
    StatusOr<std::unique_ptr<File>> file = files.Open(path, OpenMode::kCreate);
    ASSERT_TRUE(file.ok()) << file.status();
    ASSERT_TRUE((*file)->WriteDurably(0, AlignedBuffer(kDiskBlockBytes).span()).ok());
  }

  std::string directory_;
};

TEST_F(PosixFileSystemTest, DescriptionSaysWhatWasLeftOutAndWhy) {
  PosixFileSystem plain({.io_uring = false, .direct = false});
  WriteOneFile(plain, directory_ + "/plain");
  EXPECT_EQ(plain.Description(), "pwrite (by choice), page cache (by choice)");

  // Whether the kernel and the file system refuse something depends on the machine; that the description says so does
  // not.
  int error = 0;
  const bool ring = internal::DiskRing::Create(&error) != nullptr;
  PosixFileSystem files;
  WriteOneFile(files, directory_ + "/a");
  EXPECT_THAT(files.Description(), StartsWith(ring ? "io_uring, " : "pwrite (the kernel refuses io_uring: "));
  EXPECT_THAT(files.Description(),
              testing::AnyOf(testing::EndsWith(", O_DIRECT"), HasSubstr("page cache (O_DIRECT is refused for ")));

  PmemFileSystem pmem;
  EXPECT_EQ(pmem.Description(), "libpmem");
  WriteOneFile(pmem, directory_ + "/p");
  EXPECT_THAT(pmem.Description(), testing::AnyOf(HasSubstr("persistent memory (cache-line"), HasSubstr("(msync")));
}

TEST_F(PosixFileSystemTest, ALockHoldsAgainstOtherProcessesAndEndsWithItsHolder) {
  int ready[2];
  int done[2];
  ASSERT_EQ(pipe(ready), 0);
  ASSERT_EQ(pipe(done), 0);
  const pid_t child = fork();
  if (child == 0) {
    PosixFileSystem files;
    const StatusOr<std::shared_ptr<void>> lock = files.Lock(directory_);
    char byte = lock.ok() ? 'y' : 'n';
    if (write(ready[1], &byte, 1) != 1) _exit(1);
    _exit(read(done[0], &byte, 1) == 1 ? 0 : 1);  // without releasing the lock
  }
  char byte = 0;
  ASSERT_EQ(read(ready[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'y');
  PosixFileSystem files;
  const Status refused = files.Lock(directory_).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(refused)) << refused;
  EXPECT_THAT(std::string(refused.message()), HasSubstr("process " + std::to_string(child)));
  ASSERT_EQ(write(done[1], &byte, 1), 1);
  int end = 0;
  ASSERT_EQ(waitpid(child, &end, 0), child);
  EXPECT_TRUE(files.Lock(directory_).ok()) << "the dead hold nothing";
  for (const int fd : {ready[0], ready[1], done[0], done[1]}) close(fd);
}

// A child without the handlers of fork, as between vfork and exec, has a copy of the file that has the lock.
TEST_F(PosixFileSystemTest, ALockEndsWithItsHolderAlsoIfAChildHasItsFile) {
  int done[2];
  ASSERT_EQ(pipe(done), 0);
  PosixFileSystem files;
  std::shared_ptr<void> lock = files.Lock(directory_).value();
  const pid_t child = _Fork();
  if (child == 0) {
    char byte = 0;
    close(done[1]);
    _exit(read(done[0], &byte, 1) == 0 ? 0 : 1);
  }
  EXPECT_FALSE(files.Lock(directory_).ok());
  lock.reset();
  lock = files.Lock(directory_).value();
  close(done[1]);
  int end = 0;
  ASSERT_EQ(waitpid(child, &end, 0), child);
  EXPECT_EQ(end, 0);
  EXPECT_FALSE(files.Lock(directory_).ok()) << "the child has ended, and the lock stays";
  close(done[0]);
}

TEST_F(PosixFileSystemTest, ErrorsOfTheSystemHaveAMeaningAndAdvice) {
  const Status full = internal::PosixError(ENOSPC, "writing /x");
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_EQ(full.message(), "writing /x: No space left on device; make room on that disk, or raise the quota");
  EXPECT_TRUE(absl::IsDataLoss(internal::PosixError(EIO, "reading /x")));
  EXPECT_TRUE(absl::IsPermissionDenied(internal::PosixError(EROFS, "writing /x")));
  EXPECT_TRUE(absl::IsUnavailable(internal::PosixError(EMFILE, "opening /x")));
  // A full disk that is reported by a sync is not a full disk: pages may be lost.
  EXPECT_TRUE(absl::IsDataLoss(internal::SyncError(ENOSPC, "syncing /x")));
}

// It is refused without waiting for a program that opens the other end of a FIFO.
TEST_F(PosixFileSystemTest, WhatIsNoFileIsRefused) {
  const std::string fifo = directory_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0644), 0);
  std::filesystem::create_directory(directory_ + "/directory");
  std::filesystem::create_symlink("nowhere", directory_ + "/to-nowhere");
  std::filesystem::create_symlink("loop", directory_ + "/loop");
  PosixFileSystem files;
  PmemFileSystem pmem;
  for (FileSystem* each : {static_cast<FileSystem*>(&files), static_cast<FileSystem*>(&pmem)}) {
    for (const OpenMode mode : {OpenMode::kRead, OpenMode::kReuse}) {
      const Status of_fifo = each->Open(fifo, mode).status();
      EXPECT_TRUE(absl::IsInvalidArgument(of_fifo)) << of_fifo;
      EXPECT_THAT(std::string(of_fifo.message()), HasSubstr(fifo + ": is a FIFO"));
      for (const std::string& path : {directory_ + "/directory", directory_ + "/loop", std::string("/dev/null")}) {
        const Status status = each->Open(path, mode).status();
        EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
        EXPECT_THAT(std::string(status.message()), HasSubstr(path));
      }
      EXPECT_TRUE(absl::IsNotFound(each->Open(directory_ + "/to-nowhere", mode).status()));
    }
    for (const std::string& path : {fifo, std::string("/etc/passwd")}) {
      const Status listed = each->List(path).status();
      EXPECT_TRUE(absl::IsInvalidArgument(listed)) << listed;
      EXPECT_THAT(std::string(listed.message()), HasSubstr(path + ": is a file, not a directory"));
    }
    EXPECT_TRUE(absl::IsNotFound(each->List(directory_ + "/none").status()));
  }
  ASSERT_EQ(mkfifo((directory_ + "/LOCK").c_str(), 0644), 0);
  EXPECT_TRUE(absl::IsInvalidArgument(files.Lock(directory_).status()));
}

TEST_F(PosixFileSystemTest, TheRingTellsErrorsAndIsAsGoodAsBefore) {
  int error = 0;
  const auto ring = internal::DiskRing::Create(&error);
  if (ring == nullptr) GTEST_SKIP() << "the kernel refuses io_uring: " << strerror(error);
  const AlignedBuffer data(3 * internal::DiskRing::kPieceBytes);
  const std::string path = directory_ + "/a";
  const internal::Descriptor writable(open(path.c_str(), O_RDWR | O_CREAT, 0644));
  const internal::Descriptor read_only(open(path.c_str(), O_RDONLY));
  for (const size_t bytes : {kDiskBlockBytes, data.size()}) {
    EXPECT_EQ(ring->Write(read_only.get(), 0, data.span().first(bytes)), EBADF);
    EXPECT_TRUE(ring->works());
    EXPECT_EQ(ring->Write(writable.get(), 0, data.span().first(bytes)), 0);
  }
}

// Makes io_uring_enter fail in this thread from now on. False: the system does not permit that.
bool RefuseRingsHere() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_io_uring_enter, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{.len = std::size(steps), .filter = steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

// What commits wait for must not be completed by a thread of the kernel, which on a busy machine waits for a core.
TEST_F(PosixFileSystemTest, DurableWritesDoWithoutTheRing) {
  int error = 0;
  if (internal::DiskRing::Create(&error) == nullptr) GTEST_SKIP() << "the kernel refuses io_uring: " << strerror(error);
  PosixFileSystem files;
  const std::unique_ptr<File> file = files.Open(directory_ + "/a", OpenMode::kCreate).value();
  const AlignedBuffer large(3 * internal::DiskRing::kPieceBytes);
  std::thread worker([&] {  // the filter ends with the thread
    if (!RefuseRingsHere()) GTEST_SKIP() << "no filter of system calls: " << strerror(errno);
    EXPECT_TRUE(file->WriteDurably(0, large.span().first(kDiskBlockBytes)).ok());
    EXPECT_TRUE(file->WriteDurably(kDiskBlockBytes, large.span()).ok());
    EXPECT_THAT(files.Description(), StartsWith("io_uring, "));
    EXPECT_TRUE(file->Write(0, large.span().first(kDiskBlockBytes)).ok());
    EXPECT_THAT(files.Description(), StartsWith("pwrite (")) << "the ring was refused, and another write replaces it";
  });
  worker.join();
}

}  // namespace posix_file_system_test
}  // namespace gannet::log
