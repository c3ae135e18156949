#include "cluster/join/secret.h"

#include <sys/stat.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "absl/strings/str_cat.h"

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

}  // namespace

StatusOr<std::string> ReadSecret(const Config& config) {
  std::string secret;
  if (!config.verbs.secret_file.empty()) {
    StatusOr<std::string> read = ReadSecretFile(config);
    if (!read.ok()) return read;
    secret = *std::move(read);
  } else if (const char* variable = std::getenv(kSecretVariable); variable != nullptr) {
    secret = variable;
  } else {
    return absl::FailedPreconditionError(absl::StrCat(config.file, ": [verbs] names no secret_file, and ",
                                                      kSecretVariable, " is not in the environment: set one of them"));
  }
  while (!secret.empty() && (secret.back() == '\n' || secret.back() == '\r')) secret.pop_back();
  if (secret.size() >= kLeastSecretBytes) return secret;
  return absl::FailedPreconditionError(absl::StrCat("the cluster's secret has ", secret.size(), " bytes, at least ",
                                                    kLeastSecretBytes, " are needed; ", kHowToMake));
}

}  // namespace gannet::cluster
