#include "cluster/join/secret.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace gannet::cluster {
namespace {

constexpr const char* kHowToMake = "make one with: (umask 077; openssl rand -base64 32 > FILE)";

StatusOr<std::string> ReadSecretFile(const Config& config) {
  const std::string& file = config.verbs.secret_file;
  const auto wrong = [&](absl::string_view what) {
    return absl::FailedPreconditionError(absl::StrCat(config.file, ": [verbs] secret_file: ", file, ": ", what));
  };
  struct stat status {};
  if (stat(file.c_str(), &status) != 0) return wrong(absl::StrCat(std::strerror(errno), "; ", kHowToMake));
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return wrong("others than its owner may read it or change it; chmod 600");
  }
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) return wrong("cannot be read");
  return text.str();
}

StatusOr<std::string> ReadConfigured(const Config& config) {
  if (!config.verbs.secret_file.empty()) return ReadSecretFile(config);
  if (const char* variable = std::getenv(kSecretVariable); variable != nullptr) return std::string(variable);
  return absl::FailedPreconditionError(absl::StrCat(config.file, ": [verbs] names no secret_file, and ",
                                                    kSecretVariable, " is not in the environment: set one of them"));
}

}  // namespace

StatusOr<std::string> ReadSecret(const Config& config) {
  const StatusOr<std::string> configured = ReadConfigured(config);
  if (!configured.ok()) return configured.status();
  absl::string_view secret = *configured;
  while (absl::ConsumeSuffix(&secret, "\n") || absl::ConsumeSuffix(&secret, "\r")) {
  }
  if (secret.size() >= kLeastSecretBytes) return std::string(secret);
  return absl::FailedPreconditionError(absl::StrCat("the cluster's secret has ", secret.size(), " bytes, at least ",
                                                    kLeastSecretBytes, " are needed; ", kHowToMake));
}

}  // namespace gannet::cluster
