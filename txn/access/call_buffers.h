// CallBuffers: the messages of the calls of one operation, of which several may be in progress.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "rdma/message_buffer.h"

namespace gannet::txn {

// Kept from one operation to the next. Used by one operation at a time.
class CallBuffers {
 public:
  struct Messages {
    rdma::MessageBuffer request;
    rdma::MessageBuffer response;
  };
  // Returns those of a call, by its number. They stay where they are.
  Messages* Of(size_t call) {
    while (messages_.size() <= call) messages_.push_back(std::make_unique<Messages>());
    return messages_[call].get();
  }

 private:
  std::vector<std::unique_ptr<Messages>> messages_;
};

}  // namespace gannet::txn
