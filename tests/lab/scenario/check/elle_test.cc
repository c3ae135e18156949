#include "lab/scenario/check/elle.h"

#include "gtest/gtest.h"

namespace gannet::scenario {
namespace elle_test {

TEST(Elle, GoldenText) {
  AppendHistory history;
  const OperationId a = history.Invoke(0, 10, {MicroOp::Append(3, 17), MicroOp::Read(4)});
  const OperationId b = history.Invoke(1, 11, {MicroOp::Append(4, 1)});
  history.Complete(b, 12, Outcome::kFail);
  history.Complete(a, 15, Outcome::kOk, {{}, {1, 2}});
  const OperationId c = history.Invoke(0, 16, {MicroOp::Read(5)});
  history.Complete(c, 17, Outcome::kInfo);
  const OperationId d = history.Invoke(0, 18, {MicroOp::Read(5), MicroOp::Append(5, 6)});
  history.Invoke(1, 19, {MicroOp::Append(4, 2)});  // its client dies here
  history.Complete(d, 20, Outcome::kOk, {{}, {}});
  const OperationId e = history.Invoke(1, 21, {MicroOp::Read(4)});  // it returns
  history.Complete(e, 22, Outcome::kOk, {{1, 2, 3}});
  history.Invoke(0, 23, {MicroOp::Append(4, 3)});  // the end of the history
  EXPECT_EQ(ToElleEdn(history),
            "{:type :invoke, :f :txn, :value [[:append 3 17] [:r 4 nil]], :process 0, :time 10, :index 0}\n"
            "{:type :invoke, :f :txn, :value [[:append 4 1]], :process 1, :time 11, :index 1}\n"
            "{:type :fail, :f :txn, :value [[:append 4 1]], :process 1, :time 12, :index 2}\n"
            "{:type :ok, :f :txn, :value [[:append 3 17] [:r 4 [1 2]]], :process 0, :time 15, :index 3}\n"
            "{:type :invoke, :f :txn, :value [[:r 5 nil]], :process 0, :time 16, :index 4}\n"
            "{:type :info, :f :txn, :value [[:r 5 nil]], :process 0, :time 17, :index 5}\n"
            "{:type :invoke, :f :txn, :value [[:r 5 nil] [:append 5 6]], :process 2, :time 18, :index 6}\n"
            "{:type :invoke, :f :txn, :value [[:append 4 2]], :process 1, :time 19, :index 7}\n"
            "{:type :ok, :f :txn, :value [[:r 5 []] [:append 5 6]], :process 2, :time 20, :index 8}\n"
            "{:type :info, :f :txn, :value [[:append 4 2]], :process 1, :time 21, :index 9}\n"
            "{:type :invoke, :f :txn, :value [[:r 4 nil]], :process 3, :time 21, :index 10}\n"
            "{:type :ok, :f :txn, :value [[:r 4 [1 2 3]]], :process 3, :time 22, :index 11}\n"
            "{:type :invoke, :f :txn, :value [[:append 4 3]], :process 2, :time 23, :index 12}\n"
            "{:type :info, :f :txn, :value [[:append 4 3]], :process 2, :time 23, :index 13}\n");
}

TEST(Elle, NothingIsNothing) {
  EXPECT_EQ(ToElleEdn(AppendHistory()), "");
}

}  // namespace elle_test
}  // namespace gannet::scenario
