#include "sparsight/data/fetch.h"

#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/log.h"
#include "sparsight/data/hash.h"
#include "sparsight/data/readers/bytes.h"
#include "sparsight/data/untar.h"
#include "sparsight/io/atomic_file.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

bool is_file(const std::string& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

// A digest may be the first digits of one.
bool has_digest(const std::string& path, const std::string& digest) {
  return is_file(path) && (digest.empty() || hash_file(path, digest_algorithm(digest)).starts_with(digest));
}

// Whether the content of `path` is that of `file`: as published, compressed differently or uncompressed.
bool is_right(const std::string& path, const RemoteFile& file) {
  std::error_code error;
  if (!is_file(path) || static_cast<int64_t>(fs::file_size(path, error)) > file.max_bytes || error) return false;
  if (file.unpacked_sha256.empty()) return has_digest(path, file.digest);
  const Bytes bytes = read_bytes(path, file.max_bytes);
  if (hash_bytes(bytes, digest_algorithm(file.digest)).starts_with(file.digest)) return true;
  if (!is_gzip(bytes)) return hash_bytes(bytes) == file.unpacked_sha256;
  try {
    return hash_bytes(inflate(bytes, static_cast<size_t>(file.max_bytes), path)) == file.unpacked_sha256;
  } catch (const Error&) {
    return false;
  }
}

FileCheck checker(const RemoteFile& file) {
  return [&file](const std::string& path) {
    if (is_right(path, file)) return std::string();
    const std::string algorithm = digest_algorithm(file.digest);
    return cat("its file has ", algorithm, " ", hash_file(path, algorithm), ", the published one ",
               file.digest.size() == 8 ? "begins with " : "", file.digest);
  };
}

void copy_file(const std::string& from, const std::string& to) {
  if (fs::exists(to) && fs::equivalent(from, to)) return;
  const Bytes bytes = read_bytes(from);
  AtomicFile file(to);
  file.write(bytes.data(), bytes.size());
  file.commit();
}

bool members_are_right(const std::string& folder, const std::vector<ArchiveMember>& members) {
  for (const ArchiveMember& member : members)
    if (!has_digest(folder + "/" + member.name, member.sha256)) return false;
  return !members.empty();
}

void unpack(const std::string& archive, const RemoteFile& file, const std::string& to) {
  log_info("unpacking ", file.name);
  std::map<std::string, std::string> wanted;
  for (const ArchiveMember& member : file.members) wanted[member.path] = to + "/" + member.name;
  untar(archive, wanted, file.max_bytes);
  if (!members_are_right(to, file.members)) fail(printable(archive), ": its files are not the published ones");
}

// Copies `file` from a local folder; returns the names of the resulting files in `to`.
std::vector<std::string> take_from_folder(const RemoteFile& file, const std::string& from, const std::string& to) {
  if (!file.members.empty()) {
    const std::string inner = from + "/" + fs::path(file.members[0].path).parent_path().native();
    std::vector<std::string> names;
    for (const ArchiveMember& member : file.members) names.push_back(member.name);
    for (const std::string& folder : {from, inner}) {
      if (!members_are_right(folder, file.members)) continue;
      for (const std::string& name : names) copy_file(folder + "/" + name, to + "/" + name);
      return names;
    }
    if (!has_digest(from + "/" + file.name, file.digest))
      fail(printable(from), " has neither ", file.name,
           " nor the files in it as they were published (first: ", file.members[0].name, ", sha256 ",
           file.members[0].sha256, ")");
    unpack(from + "/" + file.name, file, to);
    return names;
  }
  const std::string plain = file.name.ends_with(".gz") ? file.name.substr(0, file.name.size() - 3) : file.name;
  bool seen = false;
  for (const std::string& name : {file.name, plain}) {
    seen = seen || is_file(from + "/" + name);
    if (!is_right(from + "/" + name, file)) continue;
    copy_file(from + "/" + name, to + "/" + name);
    return {name};
  }
  fail(printable(from),
       seen ? cat(": ", file.name, " is not the published file (", digest_algorithm(file.digest), " ", file.digest, ")")
            : cat(" has no ", file.name, " and no ", plain));
}

std::vector<std::string> take_from_web(const RemoteFile& file, const RemoteSet& set, const FetchOptions& options) {
  std::vector<std::string> urls, names;
  for (const std::string& base : options.mirror.empty() ? set.mirrors : std::vector<std::string>{options.mirror})
    urls.push_back(base + (base.ends_with('/') ? "" : "/") + file.name);
  for (const ArchiveMember& member : file.members) names.push_back(member.name);
  if (names.empty()) names.push_back(file.name);
  const std::string path = options.to + "/" + file.name;
  if (file.members.empty() ? is_right(path, file) : members_are_right(options.to, file.members)) {
    log_info(file.name, " exists already");
    return names;
  }
  DownloadOptions limited = options.download;
  limited.max_bytes = file.max_bytes;
  if (file.members.empty() || !has_digest(path, file.digest)) download(urls, checker(file), path, limited);
  if (file.members.empty()) return names;
  unpack(path, file, options.to);
  std::error_code ignored;
  fs::remove(path, ignored);
  return names;
}

// Makes a folder, and removes it in the end if nothing came into it.
class NewFolder {
 public:
  explicit NewFolder(const std::string& path) : path_(path) {
    std::error_code ignored;
    was_there_ = fs::exists(path, ignored);
    create_folder(path);
  }
  ~NewFolder() {
    std::error_code ignored;
    if (!was_there_) fs::remove(path_, ignored);  // only where it is empty
  }
  NewFolder(const NewFolder&) = delete;

 private:
  std::string path_;
  bool was_there_;
};

}  // namespace

void fetch_set(const RemoteSet& set, const FetchOptions& options) {
  const NewFolder folder(options.to);
  std::string sums;
  for (const RemoteFile& file : set.files) {
    const std::vector<std::string> names =
        options.from.empty() ? take_from_web(file, set, options) : take_from_folder(file, options.from, options.to);
    for (const std::string& name : names) sums += hash_file(options.to + "/" + name) + "  " + name + "\n";
  }
  write_file_atomically(options.to + "/SHA256SUMS", sums);
}

}  // namespace sparsight
