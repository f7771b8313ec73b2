// The datasets and pretrained weights of `data fetch`: where their owners publish them, their checksums and their
// licences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sparsight/core/limits.h"

namespace sparsight {

// A file inside an archive.
struct ArchiveMember {
  std::string path;    // in the archive
  std::string name;    // in the dataset's folder
  std::string sha256;  // "" if its owner published none and none is needed (lists of names)
};

struct RemoteFile {
  std::string name;                    // appended to a mirror's address; also the name in the dataset's folder
  std::string digest;                  // SHA-256 of the download, its first 8 digits, or MD5
  std::string unpacked_sha256;         // of the content of a .gz file, for copies compressed differently; or ""
  std::vector<ArchiveMember> members;  // of a .tar.gz archive, which is not kept; or empty
  // Neither what is downloaded nor what it unpacks to has more.
  int64_t max_bytes = kMaxDownloadBytes;
};

struct RemoteSet {
  std::string name;  // its folder
  std::string title;
  std::string licence;  // as stated by its owner
  std::string home;
  std::vector<std::string> mirrors;  // base addresses, ending in /, tried in this order
  std::vector<RemoteFile> files;
};

const std::vector<RemoteSet>& remote_sets();

// Weights of models, for train.init_from; each "set" is one file.
const std::vector<RemoteSet>& remote_weights();

// The set of either list with that name. Raises UsageError naming the nearest one.
const RemoteSet& find_remote_set(const std::string& name);
// Where its files go below the folder of all datasets: "mnist", "weights/resnet50".
std::string usual_folder(const RemoteSet& set);

}  // namespace sparsight
