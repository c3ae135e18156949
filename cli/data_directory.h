// A directory with the data of a database, seen from outside: by those who do not open the database.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "log/checkpoint.h"
#include "log/file/file_system.h"
#include "rdma/base/status.h"
#include "txn/database.h"

namespace gannet::cli {

struct NodeData {
  std::string path;  // the directory itself, or its node-<n>
  log::Manifest manifest;
};

// The operating system's files. Any medium's can be read with it.
std::shared_ptr<log::FileSystem> DiskFiles();
// What the medium's files are written with.
std::shared_ptr<log::FileSystem> FilesOf(txn::LogMedium medium);

// The manifests of all nodes, in order. NotFound: there is no database. DataLoss: one is damaged or missing, or they
// contradict each other.
StatusOr<std::vector<NodeData>> ReadDataDirectory(log::FileSystem& files, const std::string& directory);

// True if it is not there, or has nothing in it but what a first start leaves that was interrupted.
StatusOr<bool> IsAbsentOrEmpty(log::FileSystem& files, const std::string& directory);

}  // namespace gannet::cli
