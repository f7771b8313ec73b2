// The folder of an attack, which one process at a time writes. It has an identity, so that results of other settings,
// data or weights never mix, and keeps finished pieces, so that a killed attack goes on where it was.
//
//   attack.json     {"format", "version", "identity", "batch", "bytes_per_image"}
//   pieces/A-B/     images A to B-1 that are done (attack_shard.h); absent once the attack is finished
//   pieces/A-B.state   where the attack on these images is (attack_saver.h)
//   result.json     of a finished attack; written last. The other files: docs/attacks.md
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/options.h"
#include "sparsight/io/file_lock.h"

namespace sparsight {

inline constexpr const char* kAttackIndex = "attack.json";
inline constexpr const char* kAttackResult = "result.json";

struct PieceRange {
  int64_t first = 0, last = 0;  // images first .. last - 1
  std::string path;
};

class AttackFolder {
 public:
  // Creates the folder, or opens one with the same identity. Raises Error naming the first setting that differs, for a
  // folder with other content, and while another process writes it. That of a finished attack may be on a
  // read-only disk.
  AttackFolder(const std::string& path, const Json& identity);
  // Where this began the attack and no images are done or saved, as after a refusal, nothing stays: attack.json and a
  // folder that was made here are removed, but not after Ctrl-C.
  ~AttackFolder();
  AttackFolder(const AttackFolder&) = delete;
  AttackFolder& operator=(const AttackFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  int64_t batch() const { return batch_; }                      // with which the attack was begun; 0: it was not
  int64_t bytes_per_image() const { return bytes_per_image_; }  // peak memory of a pass; 0: not measured
  void begin(int64_t batch, int64_t bytes_per_image);

  // Those done so far, each beginning where the one before ends, the first at image 0.
  std::vector<PieceRange> pieces() const;
  std::string piece_path(int64_t first, int64_t last) const;
  // state_path() of an attack in another folder.
  static std::string state_path(const std::string& folder, int64_t first, int64_t last);

  // Nothing unless the attack is finished. Raises Error for a damaged file.
  std::optional<Json> result() const;
  // The content of result.json.
  static Json with_format(const Json& result);
  // Writes result.json and removes the pieces.
  void finish(const Json& result) const;

 private:
  void read_index();
  void remove_pieces() const;

  std::string path_;
  Json identity_;
  int64_t batch_ = 0, bytes_per_image_ = 0;
  bool made_ = false, made_parent_ = false, begun_here_ = false;
  std::optional<FileLock> lock_;
};

}  // namespace sparsight
