#include "sparsight/data/fingerprint.h"

#include <filesystem>
#include <map>

#include "sparsight/core/error.h"
#include "sparsight/data/hash.h"
#include "sparsight/data/readers/bytes.h"
#include "sparsight/data/remote_sets.h"

namespace sparsight {
namespace {

FileContent read_content(const PlacedFile& file) {
  if (!file.path.ends_with(".gz"))
    return {file.name, static_cast<int64_t>(std::filesystem::file_size(file.path)), hash_file(file.path)};
  const Bytes bytes = inflate(read_bytes(file.path), kMaxFileBytes, printable(file.path));
  return {file.name, std::ssize(bytes), hash_bytes(bytes)};
}

// The published checksums of unpacked files by name; without those that nobody published.
std::map<std::string, std::string> published_checksums(const std::string& set) {
  std::map<std::string, std::string> checksums;
  for (const RemoteSet& remote : remote_sets()) {
    if (remote.name != set) continue;
    for (const RemoteFile& file : remote.files) {
      const std::string plain = file.name.ends_with(".gz") ? file.name.substr(0, file.name.size() - 3) : file.name;
      if (!file.unpacked_sha256.empty()) checksums[plain] = file.unpacked_sha256;
      for (const ArchiveMember& member : file.members)
        if (!member.sha256.empty()) checksums[member.name] = member.sha256;
    }
  }
  return checksums;
}

}  // namespace

std::string fingerprint_texts(const std::vector<std::string>& texts) {
  Hasher hasher;
  for (const std::string& text : texts) hasher.add(text.data(), text.size()), hasher.add("\n", 1);
  return hasher.hex().substr(0, kFingerprintDigits);
}

DataFingerprint data_fingerprint(const DataPlace& place, const std::string& folder) {
  const std::map<std::string, std::string> checksums = published_checksums(place.name);
  DataFingerprint found;
  std::vector<std::string> lines;
  bool known = true, equal = true;
  for (const PlacedFile& file : placed_files(place, folder)) {
    const FileContent content = read_content(file);
    lines.push_back(cat(content.name, " ", content.bytes, " ", content.sha256));
    const auto published = checksums.find(content.name);
    known = known && published != checksums.end();
    equal = equal && known && published->second == content.sha256;
    found.files.push_back(content);
  }
  found.hex = fingerprint_texts(lines);
  if (known) found.published = equal;
  return found;
}

}  // namespace sparsight
