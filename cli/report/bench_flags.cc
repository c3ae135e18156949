#include "cli/report/bench_flags.h"

#include "absl/strings/str_cat.h"
#include "index/registry.h"

namespace gannet::cli {

namespace {

using Json = nlohmann::ordered_json;

}  // namespace

void AddClusterFlags(Flags* flags, std::string* cluster, std::optional<absl::Duration>* wait, const std::string& what) {
  flags->Group("Where it is served");
  flags
      ->Add("--cluster", "cluster", cluster, form::Path("FILE"),
            "Run against the servers of this cluster (`gannet serve`), as " + what)
      .Reports([cluster] { return cluster->empty() ? Json() : Json(*cluster); });
  flags->Add("--wait", "", wait, form::Time(absl::ZeroDuration()),
             "How long to wait until the servers have loaded. Default: 1m");
}

Flag& AddIndexRights(Flags* flags, std::optional<index::IndexRights>* rights, const std::string& by_verbs,
                     const std::string& otherwise) {
  return flags->Add(
      "--index-rights", "index_rights", rights, form::kRights,
      absl::StrCat("Who may change an index of kind ", index::KindsWith(&index::IndexTraits::client_writes),
                   ": owner (clients only READ it, and call for\nchanges) or clients (", by_verbs,
                   "). Default: clients", otherwise),
      kOfServers);
}

Flag& AddSeed(Flags* flags, uint64_t* seed) {
  return flags->Add("--seed", "seed", seed, form::Integer(0, INT64_MAX), "Seed of everything random. Default: 1");
}

}  // namespace gannet::cli
