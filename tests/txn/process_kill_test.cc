// Processes over one memory file (or over verbs: tests/softroce) that move money, and are killed at any instruction: no
// live process hangs, no record stays locked, and no money appears or is lost among owners that are all alive.
//
// Money is in accounts (a hash table, spread over the servers) and sometimes in envelopes (an ordered table): rows that
// are inserted with an amount, and removed again. Two groups of accounts trade only among themselves, so that their
// sums hold also after server 1 has died: the local accounts of server 0, and a ring of servers 0 and 2, whose
// transactions also count something at server 1. Server 1 is their decider, and dies together with a client
// (txn/peer/repair.h). This process only forks and kills, so it needs no thread.
//
// Every second cluster has the adversarial fabric. It yields within the stores of lines, so many processes die there.
//
// GANNET_KILLS=100 sets the number of deaths; the default is smaller, for a busy machine.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/random.h"
#include "base/thread.h"
#include "gtest/gtest.h"
#include "tests/rdma/shared_fabric.h"
#include "txn/database.h"

namespace gannet::txn {
namespace process_kill_test {

constexpr int kServers = 3;
constexpr int kMortal = 1;  // the server that is killed
constexpr int kSlots = 4;   // three clients, and room for the one that counts the money
constexpr int kClients = 3;
constexpr uint64_t kAccounts = 96;     // account k lives on server k % kServers
constexpr uint64_t kLocals = 8;        // accounts 0, 3, 6, ...
constexpr uint64_t kRingSize = 8;      // four of server 0, four of server 2
constexpr uint64_t kRingBegin = 24;    // the first of them; the counters of server 1 are between
constexpr uint64_t kOthersBegin = 36;  // accounts from here on trade with each other
constexpr int64_t kBalance = 1000;
constexpr uint64_t kEnvelopes = 256;  // keys of envelopes are below
constexpr int kCommitsPerSign = 5;
constexpr uint64_t kPatienceNanos = 60'000'000'000;
constexpr int kKillsPerCluster = 8;  // of clients; then a client and a server die, and the next cluster begins

// Mode of the next clusters; children inherit it from their parent.
bool adversarial = false;
int impatient_server = -1;

struct Money {
  int64_t amount = 0;
  int64_t filler[12] = {};  // several lines
};

Placement Spread() {
  return {.owner = [](const index::Key& key, int n) { return static_cast<rdma::NodeId>(key.integer() % n); },
          .range_owner = [](const index::Key&, const index::Key&, int) { return Placement::kSeveralNodes; }};
}

// A process attached to the cluster, with its tables. Errors end the process with a message.
struct Member {
  Member(const std::string& path, bool server, int first_node, int last_node) {
    rdma::SharedFabric shared = rdma::MakerOfSharedFabrics()({.path = path,
                                                              .servers = kServers,
                                                              .clients = kSlots,
                                                              .bytes_per_node = uint64_t{16} << 20,
                                                              .adversarial = adversarial,
                                                              .impatient = server && first_node == impatient_server});
    fabric = std::move(shared.fabric);
    DatabaseOptions options;
    options.data_nodes = kServers;
    options.call_timeout = shared.call_timeout;
    options.seed = WallNanos();
    Status last = absl::UnavailableError("no node");
    // Over verbs it takes some time until the slot of a killed process is free, and server 0 may not be there yet.
    for (const uint64_t deadline = NowNanos() + kPatienceNanos; database == nullptr;) {
      GANNET_CHECK(NowNanos() < deadline, "%s", last.ToString());
      for (int node = first_node; node <= last_node && database == nullptr; ++node) {
        auto opened = Database::Open(fabric.get(), static_cast<rdma::NodeId>(node), options);
        last = opened.status();
        if (opened.ok()) database = *std::move(opened);
      }
      if (database == nullptr) SleepForNanos(1'000'000);
    }
    accounts = *database->CreateTable(
        {.name = "accounts", .payload_bytes = sizeof(Money), .expected_rows = kAccounts, .placement = Spread()});
    envelopes = *database->CreateTable(
        {.name = "envelopes", .index = IndexKind::kXStore, .payload_bytes = sizeof(Money), .placement = Spread()});
    const Status started = database->Start(absl::Minutes(2));
    GANNET_CHECK(started.ok(), "%s: %s", server ? "server" : "client", started.ToString());
  }

  Status Add(BlockingTransaction& t, uint64_t account, int64_t amount) const {
    Money money;
    StatusOr<RecordHandle> handle = t.GetForUpdate(*accounts, account, &money);
    if (!handle.ok()) return handle.status();
    money.amount += amount;
    return t.Update(*handle, money);
  }

  std::unique_ptr<rdma::Fabric> fabric;
  std::unique_ptr<Database> database;
  const Table* accounts = nullptr;
  const Table* envelopes = nullptr;
};

// True until the parent closes the other end, or is gone.
bool MayGoOn(int control, int patience_ms) {
  pollfd end = {control, POLLIN, 0};
  return poll(&end, 1, patience_ms) == 0;
}

// If the pipe is full, it has enough signs.
void Sign(int to) {
  const char sign = '.';
  GANNET_CHECK(write(to, &sign, 1) == 1 || errno == EAGAIN, "errno %d", errno);
}

int RunServer(const std::string& path, int id, int control, int signs) {
  const Member member(path, /*server=*/true, id, id);
  const Status loaded = member.database->Run([&](BlockingTransaction& t) {
    for (uint64_t key = static_cast<uint64_t>(id); key < kAccounts; key += kServers) {
      GANNET_RETURN_IF_ERROR(t.Insert(*member.accounts, key, Money{.amount = kBalance}));
    }
    return absl::OkStatus();
  });
  GANNET_CHECK(loaded.ok(), "%s", loaded.ToString());
  Sign(signs);
  while (MayGoOn(control, 60'000)) {
  }
  return 0;
}

constexpr uint64_t LocalAccount(uint64_t i) {
  return i * kServers;
}
constexpr uint64_t RingAccount(uint64_t i) {
  return kRingBegin + i / 2 * kServers + i % 2 * 2;
}
constexpr uint64_t OtherAccount(uint64_t i) {
  return kOthersBegin + i;
}

// Transfers between two of `n` accounts.
Status Transfer(const Member& member, Random& random, uint64_t n, uint64_t (*account)(uint64_t)) {
  const int64_t amount = static_cast<int64_t>(random.Below(20));
  const uint64_t from = random.Below(n);
  const uint64_t to = (from + 1 + random.Below(n - 1)) % n;
  return member.database->Run([&](BlockingTransaction& t) {
    if (account == RingAccount) GANNET_RETURN_IF_ERROR(member.Add(t, kRingBegin + kMortal, 0));
    GANNET_RETURN_IF_ERROR(member.Add(t, account(from), -amount));
    return member.Add(t, account(to), amount);
  });
}

Status TransferSomewhere(const Member& member, Random& random) {
  switch (random.Below(4)) {
    case 0:
      return Transfer(member, random, kLocals, LocalAccount);
    case 1:
      return Transfer(member, random, kRingSize, RingAccount);
    default:
      return Transfer(member, random, kAccounts - kOthersBegin, OtherAccount);
  }
}

Status FillEnvelope(const Member& member, Random& random) {
  const int64_t amount = static_cast<int64_t>(random.Below(20));
  const uint64_t from = OtherAccount(random.Below(kAccounts - kOthersBegin));
  const uint64_t envelope = random.Below(kEnvelopes);
  const Status status = member.database->Run([&](BlockingTransaction& t) {
    GANNET_RETURN_IF_ERROR(member.Add(t, from, -amount));
    return t.Insert(*member.envelopes, envelope, Money{.amount = amount});
  });
  return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
}

Status OpenEnvelope(const Member& member, Random& random) {
  const uint64_t envelope = random.Below(kEnvelopes);
  const uint64_t to = OtherAccount(random.Below(kAccounts - kOthersBegin));
  const Status status = member.database->Run([&](BlockingTransaction& t) {
    Money money;
    GANNET_RETURN_IF_ERROR(t.Get(*member.envelopes, envelope, &money));
    GANNET_RETURN_IF_ERROR(t.Remove(*member.envelopes, envelope));
    return member.Add(t, to, money.amount);
  });
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

int RunClient(const std::string& path, uint64_t seed, int control, int signs) {
  const Member member(path, /*server=*/false, kServers, kServers + kSlots - 1);
  Random random(seed);
  for (int commits = 0; MayGoOn(control, 0);) {
    const uint64_t choice = random.Below(4);
    const Status status = choice < 2    ? TransferSomewhere(member, random)
                          : choice == 2 ? FillEnvelope(member, random)
                                        : OpenEnvelope(member, random);
    const bool server_gone = absl::IsUnavailable(status) || absl::IsUnknown(status) || absl::IsDeadlineExceeded(status);
    GANNET_CHECK(status.ok() || server_gone, "%s", status.ToString());
    if (status.ok() && ++commits % kCommitsPerSign == 0) Sign(signs);
  }
  return 0;
}

// Starts while all servers live, and waits for the parent's signal. Counts the money in one transaction that also
// writes every account, which shows that no lock is left. If one server is dead, it counts the accounts of the others;
// only the sums of the local accounts and of the ring are known then.
int RunAuditor(const std::string& path, bool all_live, int control, int signs) {
  const Member member(path, /*server=*/false, kServers, kServers + kSlots - 1);
  Sign(signs);
  while (MayGoOn(control, 60'000)) {
  }
  int64_t total = 0;
  int64_t local = 0;
  int64_t ring = 0;
  const auto count = [&](BlockingTransaction& t) -> Status {
    total = local = ring = 0;
    for (uint64_t key = 0; key < kAccounts; ++key) {
      if (!all_live && key % kServers == kMortal) continue;
      Money money;
      StatusOr<RecordHandle> handle = t.GetForUpdate(*member.accounts, key, &money);
      if (!handle.ok()) return handle.status();
      GANNET_RETURN_IF_ERROR(t.Update(*handle, money));
      total += money.amount;
      if (key < kRingBegin && key % kServers == 0) local += money.amount;
      if (key >= kRingBegin && key < kOthersBegin && key % kServers != kMortal) ring += money.amount;
    }
    for (uint64_t key = 0; key < kEnvelopes; ++key) {
      if (!all_live && key % kServers == kMortal) continue;
      Money money;
      Status got = t.Get(*member.envelopes, key, &money);
      if (!got.ok() && !absl::IsNotFound(got)) return got;
      if (!got.ok()) continue;
      GANNET_RETURN_IF_ERROR(t.Update(*member.envelopes, key, money));
      total += money.amount;
    }
    return absl::OkStatus();
  };
  // What the processes that died last have left may still be under repair.
  const uint64_t deadline = NowNanos() + uint64_t{30'000'000'000};
  Status status;
  do {
    status = member.database->Run(count);
  } while (absl::IsUnavailable(status) && NowNanos() < deadline);
  GANNET_CHECK(status.ok(), "the money cannot be counted: %s", status.ToString());
  GANNET_CHECK(local == kBalance * static_cast<int64_t>(kLocals), "the local accounts have %d", local);
  GANNET_CHECK(ring == kBalance * static_cast<int64_t>(kRingSize), "the ring has %d", ring);
  GANNET_CHECK(!all_live || total == kBalance * static_cast<int64_t>(kAccounts), "all together have %d", total);
  return 0;
}

// A child that lives until it is killed, or until its control pipe is closed.
class Child {
 public:
  explicit Child(const std::function<int(int control, int signs)>& body) {
    std::array<int, 2> control{};
    std::array<int, 2> signs{};
    GANNET_CHECK(pipe(control.data()) == 0 && pipe(signs.data()) == 0, "errno %d", errno);
    pid_ = fork();
    GANNET_CHECK(pid_ >= 0, "errno %d", errno);
    if (pid_ == 0) {
      // The other children's pipe ends must not stay open here: their readers would not see them closed.
      for (int fd = 3; fd < 1024; ++fd) {
        if (fd != control[0] && fd != signs[1]) close(fd);
      }
      GANNET_CHECK(fcntl(signs[1], F_SETFL, O_NONBLOCK) == 0, "errno %d", errno);
      const int code = body(control[0], signs[1]);
      std::fflush(nullptr);
      _exit(code);
    }
    close(control[0]);
    close(signs[1]);
    control_ = control[1];
    signs_ = signs[0];
  }
  ~Child() {
    if (pid_ > 0) Kill();
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Waits until it has sent `n` more signs. False if it ended.
  bool AwaitSigns(int n) {
    std::array<char, 64> buffer;
    while (n > 0) {
      const ssize_t got = read(signs_, buffer.data(), std::min<size_t>(buffer.size(), static_cast<size_t>(n)));
      if (got <= 0) return false;
      n -= static_cast<int>(got);
    }
    return true;
  }
  // Discards the signs that it has sent so far.
  void Forget() {
    std::array<char, 4096> buffer;
    pollfd end = {signs_, POLLIN, 0};
    while (poll(&end, 1, 0) > 0 && read(signs_, buffer.data(), buffer.size()) > 0) {
    }
  }
  void Strike() { kill(pid_, SIGKILL); }
  void StandStill() { kill(pid_, SIGSTOP); }
  void GoOn() { kill(pid_, SIGCONT); }
  void Kill() {
    Strike();
    Reap();
  }
  // Asks it to end; returns its exit code.
  int End() {
    close(control_);
    control_ = -1;
    return Reap();
  }
  int Reap() {
    int status = 0;
    GANNET_CHECK(waitpid(pid_, &status, 0) == pid_, "errno %d", errno);
    pid_ = -1;
    if (control_ >= 0) close(control_);
    close(signs_);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = -1;
  int control_ = -1;
  int signs_ = -1;
};

class ProcessKillTest : public ::testing::Test {
 protected:
  ~ProcessKillTest() override {
    clients_.clear();
    servers_.clear();
    unlink(path_.c_str());
  }

  void StartServers() {
    for (int id = 0; id < kServers; ++id) {
      servers_.push_back(
          std::make_unique<Child>([this, id](int control, int signs) { return RunServer(path_, id, control, signs); }));
    }
    for (auto& server : servers_) ASSERT_TRUE(server->AwaitSigns(1));
  }
  std::unique_ptr<Child> NewClient() {
    const uint64_t seed = random_.Below(uint64_t{1} << 60);
    return std::make_unique<Child>(
        [this, seed](int control, int signs) { return RunClient(path_, seed, control, signs); });
  }
  // Every live process makes progress: each commits again after this call.
  void ExpectProgress() {
    const uint64_t start = NowNanos();
    for (auto& client : clients_) client->Forget();
    for (auto& client : clients_) ASSERT_TRUE(client->AwaitSigns(2));
    longest_ = std::max(longest_, NowNanos() - start);
  }
  std::unique_ptr<Child> NewAuditor(bool all_live) {
    auto auditor = std::make_unique<Child>(
        [this, all_live](int control, int signs) { return RunAuditor(path_, all_live, control, signs); });
    EXPECT_TRUE(auditor->AwaitSigns(1));
    return auditor;
  }
  void KillClients(int kills) {
    for (int i = 0; i < kills && !HasFatalFailure(); ++i) {
      usleep(static_cast<useconds_t>(random_.Below(3000)));
      std::unique_ptr<Child>& victim = clients_[random_.Below(clients_.size())];
      victim->Kill();
      if (random_.Below(2) == 0) ExpectProgressOfOthers(victim.get());
      victim = NewClient();
      ExpectProgress();
    }
  }
  void ExpectProgressOfOthers(const Child* dead) {
    for (auto& client : clients_) {
      if (client.get() == dead) continue;
      client->Forget();
      ASSERT_TRUE(client->AwaitSigns(2));
    }
  }
  void EndClients() {
    for (auto& client : clients_) EXPECT_EQ(client->End(), 0);
    clients_.clear();
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/gannet_process_kill_", getpid());
  Random random_{20261121};
  std::vector<std::unique_ptr<Child>> servers_;
  std::vector<std::unique_ptr<Child>> clients_;
  uint64_t longest_ = 0;
};

TEST_F(ProcessKillTest, NobodyHangsAndNoMoneyIsLost) {
  const char* asked = std::getenv("GANNET_KILLS");
  const int wanted = asked != nullptr ? std::atoi(asked) : 2 * (kKillsPerCluster + 2);
  int kills = 0;
  while (kills < wanted && !HasFatalFailure()) {
    StartServers();
    for (int i = 0; i < kClients; ++i) clients_.push_back(NewClient());
    ExpectProgress();
    KillClients(kKillsPerCluster);
    if (HasFatalFailure()) return;
    EndClients();
    ASSERT_EQ(NewAuditor(/*all_live=*/true)->End(), 0);

    for (int i = 0; i < kClients; ++i) clients_.push_back(NewClient());
    ExpectProgress();
    const std::unique_ptr<Child> auditor = NewAuditor(/*all_live=*/false);
    clients_.back()->Strike();
    servers_[kMortal]->Kill();
    clients_.back()->Reap();
    clients_.pop_back();
    ExpectProgress();  // with what the other servers have
    if (HasFatalFailure()) return;
    EndClients();
    ASSERT_EQ(auditor->End(), 0);
    servers_.erase(servers_.begin() + kMortal);
    kills += kKillsPerCluster + 2;
    for (auto& server : servers_) EXPECT_EQ(server->End(), 0);
    servers_.clear();
    EXPECT_NE(access(path_.c_str(), F_OK), 0);
    adversarial = !adversarial;
  }
  std::printf("%d processes killed; the longest that all survivors needed for their next commits: %.3f s\n", kills,
              static_cast<double>(longest_) * 1e-9);
}

// A client is stopped for longer than server 0's silence limit. Server 0 finds it dead and tells the others, for whom
// it lives, and all release what it held. Then it continues where it was, probably in the middle of a commit, and
// nothing that it still writes may take effect. On a fabric that gives up no stopped process, the others wait for its
// locks.
TEST_F(ProcessKillTest, WhoStandsStillForTooLongMayGoOnLater) {
  impatient_server = 0;
  StartServers();
  for (int i = 0; i < kClients; ++i) clients_.push_back(NewClient());
  ExpectProgress();
  const bool given_up = rdma::ImpatientLimit() > absl::ZeroDuration();
  for (int round = 0; round < (given_up ? 3 : 20) && !HasFatalFailure(); ++round) {
    usleep(static_cast<useconds_t>(random_.Below(3000)));
    std::unique_ptr<Child>& victim = clients_[random_.Below(clients_.size())];
    victim->StandStill();
    const absl::Duration pause = given_up ? 2 * rdma::ImpatientLimit() : absl::Milliseconds(20);
    usleep(static_cast<useconds_t>(absl::ToInt64Microseconds(pause)));
    if (given_up) ExpectProgressOfOthers(victim.get());
    victim->GoOn();
    ExpectProgress();
  }
  impatient_server = -1;
  if (HasFatalFailure()) return;
  EndClients();
  ASSERT_EQ(NewAuditor(/*all_live=*/true)->End(), 0);
  for (auto& server : servers_) EXPECT_EQ(server->End(), 0);
  servers_.clear();
}

}  // namespace process_kill_test
}  // namespace gannet::txn
