#include "tests/index/client_process.h"

#include <sys/socket.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <string>
#include <thread>
#include <utility>

#include "base/check.h"
#include "index/change_wire.h"
#include "index/key_wire.h"
#include "tests/index/record_helper.h"

namespace gannet::index {
namespace {

Key MustGetKey(rdma::WireReader& reader) {
  bool valid = false;
  const Key key = GetKey(reader, &valid);
  GANNET_CHECK(valid, "a message without its key");
  return key;
}

// A thread of the client process. It answers questions until the other end is closed.
class Answerer {
 public:
  Answerer(IndexCluster* cluster, int fd) : cluster_(cluster), wire_(fd) {}

  void Run() {
    for (std::span<const std::byte> message; wire_.Receive(&message);) {
      rdma::WireReader question(message);
      const auto what = static_cast<Ask>(question.GetU8());
      rdma::WireWriter answer = wire_.Begin();
      Answer(what, question, answer);
      wire_.Send(answer);
    }
  }

 private:
  void Answer(Ask what, rdma::WireReader& question, rdma::WireWriter& answer) {
    switch (what) {
      case Ask::kOpen:
        client_ = std::make_unique<ClientThread>(cluster_);
        return;
      case Ask::kConnect: {
        StatusOr<std::unique_ptr<RemoteIndex>> made = client_->Connect(question.GetU16());
        PutStatus(answer, made.status());
        if (made.ok()) index_ = *std::move(made);
        return;
      }
      case Ask::kFind:
        return PutResult(answer, client_->Find(index_.get(), MustGetKey(question)));
      case Ask::kJustFind:
        return PutResult(answer, client_->Await(index_->Find(MustGetKey(question))));
      case Ask::kSettle: {
        const FindResult found = GetFound(question);
        return PutResult(answer, client_->Settle(index_.get(), MustGetKey(question), found));
      }
      case Ask::kFindMany:
        return FindMany(question, answer);
      case Ask::kScan:
        return Scan(question, answer);
      case Ask::kSearch:
        return Search(question, answer);
      case Ask::kNearest:
        return Nearest(question, answer);
      case Ask::kInsert:
      case Ask::kRemove: {
        const rdma::GlobalAddress record = question.GetAddress();
        const Key key = MustGetKey(question);
        return PutResult(
            answer, client_->Await(what == Ask::kInsert ? index_->Insert(key, record) : index_->Remove(key, record)));
      }
      case Ask::kForget:
        return index_->Forget(MustGetKey(question));
      case Ask::kStatistics:
        return PutStatistics(answer, index_->statistics());
      case Ask::kValid:
        return answer.PutU8(client_->Valid(GetWitness(question)) ? 1 : 0);
      case Ask::kEnter:
        return client_->Enter();
      case Ask::kLeave:
        return client_->Leave();
      case Ask::kAdvance:
        return cluster_->PassGracePeriod();
      case Ask::kStartEpochs:
        return cluster_->StartEpochs();
    }
  }

  static void PutResult(rdma::WireWriter& answer, const StatusOr<FindResult>& found) {
    PutStatus(answer, found.status());
    if (found.ok()) PutFound(answer, *found);
  }
  static void PutResult(rdma::WireWriter& answer, const StatusOr<Change>& change) {
    PutStatus(answer, change.status());
    if (!change.ok()) return;
    PutChange(answer, *change);
  }
  static void PutStatistics(rdma::WireWriter& answer, const ClientStatistics& statistics) {
    for (const uint64_t each : {statistics.cache_bytes, statistics.lookups, statistics.one_sided, statistics.fallbacks,
                                statistics.leaves_read}) {
      answer.PutU64(each);
    }
  }

  void FindMany(rdma::WireReader& question, rdma::WireWriter& answer) {
    std::vector<Key> keys(question.GetU32());
    for (Key& key : keys) key = MustGetKey(question);
    std::vector<FindResult> results(keys.size());
    PutStatus(answer, client_->Await(index_->FindMany(keys, results)));
    for (const FindResult& result : results) PutFound(answer, result);
  }

  void Scan(rdma::WireReader& question, rdma::WireWriter& answer) {
    ScanRange range;
    range.reverse = question.GetU8() != 0;
    range.limit = question.GetU64();
    range.from = MustGetKey(question);
    range.to = MustGetKey(question);
    ScanResult result;
    PutStatus(answer, client_->Await(index_->Scan(range, &result)));
    PutScanned(answer, result);
  }

  void Search(rdma::WireReader& question, rdma::WireWriter& answer) {
    WindowQuery query;
    query.at_one_moment = question.GetU8() != 0;
    for (double* number : {&query.window.min_x, &query.window.min_y, &query.window.max_x, &query.window.max_y}) {
      *number = std::bit_cast<double>(question.GetU64());
    }
    ScanResult result;
    PutStatus(answer, client_->Await(index_->Search(query, &result)));
    PutScanned(answer, result);
  }

  void Nearest(rdma::WireReader& question, rdma::WireWriter& answer) {
    NearestQuery query;
    query.x = std::bit_cast<double>(question.GetU64());
    query.y = std::bit_cast<double>(question.GetU64());
    query.count = question.GetU64();
    ScanResult result;
    PutStatus(answer, client_->Await(index_->Nearest(query, &result)));
    PutScanned(answer, result);
  }

  static void PutScanned(rdma::WireWriter& answer, const ScanResult& result) {
    answer.PutU32(static_cast<uint32_t>(result.entries.size()));
    for (const Entry& entry : result.entries) {
      PutKey(answer, entry.key.view());
      answer.PutAddress(entry.record);
    }
    answer.PutU32(static_cast<uint32_t>(result.witnesses.size()));
    for (const Witness& witness : result.witnesses) PutWitness(answer, witness);
  }

  IndexCluster* cluster_;
  Wire wire_;
  std::unique_ptr<ClientThread> client_;
  std::unique_ptr<RemoteIndex> index_;
};

class Proxy final : public RemoteIndex {
 public:
  explicit Proxy(Wire* wire) : wire_(wire) {}

  coro::Async<StatusOr<FindResult>> Find(const Key& key) override {
    const auto put = [&](rdma::WireWriter& writer) { PutKey(writer, key); };
    rdma::WireReader answer = wire_->AskFor(Ask::kJustFind, put);
    Status status = GetStatus(answer);
    if (!status.ok()) return StatusOr<FindResult>(std::move(status));
    return StatusOr<FindResult>(GetFound(answer));
  }

  coro::Task<Status> FindMany(std::span<const Key> keys, std::span<FindResult> results) override {
    const auto put = [&](rdma::WireWriter& writer) {
      writer.PutU32(static_cast<uint32_t>(keys.size()));
      for (const Key& key : keys) PutKey(writer, key);
    };
    rdma::WireReader answer = wire_->AskFor(Ask::kFindMany, put);
    Status status = GetStatus(answer);
    for (FindResult& result : results) result = GetFound(answer);
    co_return status;
  }

  coro::Task<Status> Scan(ScanRange range, ScanResult* result) override {
    const auto put = [&](rdma::WireWriter& writer) {
      writer.PutU8(range.reverse ? 1 : 0);
      writer.PutU64(range.limit);
      PutKey(writer, range.from);
      PutKey(writer, range.to);
    };
    co_return AskForRows(Ask::kScan, put, result);
  }

  coro::Task<Status> Search(WindowQuery query, ScanResult* result) override {
    const auto put = [&](rdma::WireWriter& writer) {
      writer.PutU8(query.at_one_moment ? 1 : 0);
      const Rectangle& window = query.window;
      for (const double number : {window.min_x, window.min_y, window.max_x, window.max_y}) {
        writer.PutU64(std::bit_cast<uint64_t>(number));
      }
    };
    co_return AskForRows(Ask::kSearch, put, result);
  }

  coro::Task<Status> Nearest(NearestQuery query, ScanResult* result) override {
    const auto put = [&](rdma::WireWriter& writer) {
      writer.PutU64(std::bit_cast<uint64_t>(query.x));
      writer.PutU64(std::bit_cast<uint64_t>(query.y));
      writer.PutU64(query.count);
    };
    co_return AskForRows(Ask::kNearest, put, result);
  }

  coro::Task<StatusOr<Change>> Insert(Key key, rdma::GlobalAddress record) override {
    co_return Modify(Ask::kInsert, key, record);
  }
  coro::Task<StatusOr<Change>> Remove(Key key, rdma::GlobalAddress record) override {
    co_return Modify(Ask::kRemove, key, record);
  }

  void Forget(const Key& key) override {
    const auto put = [&](rdma::WireWriter& writer) { PutKey(writer, key); };
    wire_->AskFor(Ask::kForget, put);
  }

  ClientStatistics statistics() const override {
    rdma::WireReader answer = wire_->AskFor(Ask::kStatistics, [](rdma::WireWriter&) {});
    ClientStatistics result;
    for (uint64_t* each :
         {&result.cache_bytes, &result.lookups, &result.one_sided, &result.fallbacks, &result.leaves_read}) {
      *each = answer.GetU64();
    }
    return result;
  }

 private:
  // Appends what the client process found.
  template <class Put>
  Status AskForRows(Ask what, const Put& put, ScanResult* result) const {
    rdma::WireReader answer = wire_->AskFor(what, put);
    Status status = GetStatus(answer);
    for (uint32_t n = answer.GetU32(); n > 0; --n) {
      const OwnedKey key(MustGetKey(answer));
      result->entries.push_back({key, answer.GetAddress()});
    }
    for (uint32_t n = answer.GetU32(); n > 0; --n) result->witnesses.push_back(GetWitness(answer));
    return status;
  }

  StatusOr<Change> Modify(Ask what, const Key& key, rdma::GlobalAddress record) const {
    const auto put = [&](rdma::WireWriter& writer) {
      writer.PutAddress(record);
      PutKey(writer, key);
    };
    rdma::WireReader answer = wire_->AskFor(what, put);
    GANNET_RETURN_IF_ERROR(GetStatus(answer));
    Change change;
    GANNET_CHECK(GetChange(answer, &change), "the client process sent no change");
    return change;
  }

  Wire* wire_;
};

// Runs until the test closes its ends of the sockets.
int RunClient(std::unique_ptr<rdma::Fabric> fabric, const Connector& connect, const std::vector<int>& sockets,
              const rdma::Forked::Inside& inside) {
  IndexCluster cluster(std::move(fabric), connect);
  inside.SayReady();
  std::vector<std::thread> threads;
  for (const int fd : sockets) {
    threads.emplace_back([&cluster, fd] { Answerer(&cluster, fd).Run(); });
  }
  for (std::thread& thread : threads) thread.join();
  return 0;
}

}  // namespace

Wire::~Wire() {
  close(fd_);
}

void Wire::Send(const rdma::WireWriter& message) {
  GANNET_CHECK(message.ok(), "a message of more than %d bytes", kMostBytes);
  const auto bytes = static_cast<uint32_t>(message.size());
  GANNET_CHECK(send(fd_, &bytes, sizeof bytes, MSG_NOSIGNAL | MSG_MORE) == sizeof bytes, "errno %d", errno);
  for (size_t sent = 0; sent < bytes;) {
    const ssize_t n = send(fd_, message.written().data() + sent, bytes - sent, MSG_NOSIGNAL);
    GANNET_CHECK(n > 0, "errno %d", errno);
    sent += static_cast<size_t>(n);
  }
}

bool Wire::Receive(std::span<const std::byte>* message) {
  uint32_t bytes = 0;
  if (recv(fd_, &bytes, sizeof bytes, MSG_WAITALL) != sizeof bytes) return false;
  GANNET_CHECK(bytes <= in_.size(), "a message of %d bytes", bytes);
  if (bytes > 0 && recv(fd_, in_.data(), bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes)) return false;
  *message = std::span<const std::byte>(in_).first(bytes);
  return true;
}

rdma::WireReader Wire::Answer() {
  std::span<const std::byte> answer;
  GANNET_CHECK(Receive(&answer), "the client's process is gone");
  return rdma::WireReader(answer);
}

ClientProcess::ClientProcess(const std::function<std::unique_ptr<rdma::Fabric>()>& join, const Connector& connect) {
  std::vector<int> theirs;
  const auto pair = [&theirs] {
    std::array<int, 2> ends{};
    GANNET_CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0, "errno %d", errno);
    theirs.push_back(ends[1]);
    return ends[0];
  };
  const int control = pair();
  for (int& fd : sockets_) fd = pair();
  child_ = std::make_unique<rdma::Forked>([&](const rdma::Forked::Inside& inside) {
    close(control);
    for (const int fd : sockets_) close(fd);
    return RunClient(join(), connect, theirs, inside);
  });
  for (const int fd : theirs) close(fd);
  control_ = std::make_unique<Wire>(control);
}

ClientProcess::~ClientProcess() {
  control_.reset();
  for (size_t i = taken_; i < sockets_.size(); ++i) close(sockets_[i]);
}

std::unique_ptr<Wire> ClientProcess::Take() {
  const std::lock_guard lock(mutex_);
  GANNET_CHECK(taken_ < sockets_.size(), "the client's process has %d threads", sockets_.size());
  return std::make_unique<Wire>(sockets_[taken_++]);
}

void PutStatus(rdma::WireWriter& writer, const Status& status) {
  writer.PutU8(static_cast<uint8_t>(status.code()));
  writer.PutString(std::string(status.message()));
}

Status GetStatus(rdma::WireReader& reader) {
  const auto code = static_cast<absl::StatusCode>(reader.GetU8());
  const std::string message(reader.GetString());
  return {code, message};
}

void PutFound(rdma::WireWriter& writer, const FindResult& found) {
  writer.PutAddress(found.record);
  PutWitness(writer, found.witness);
  writer.PutU8(found.from_cache ? 1 : 0);
}

FindResult GetFound(rdma::WireReader& reader) {
  FindResult found;
  found.record = reader.GetAddress();
  found.witness = GetWitness(reader);
  found.from_cache = reader.GetU8() != 0;
  return found;
}

std::unique_ptr<RemoteIndex> ProxyOf(Wire* wire) {
  return std::make_unique<Proxy>(wire);
}

}  // namespace gannet::index
