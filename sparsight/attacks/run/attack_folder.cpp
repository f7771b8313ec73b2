#include "sparsight/attacks/run/attack_folder.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <filesystem>

#include "sparsight/core/error.h"
#include "sparsight/core/interrupt.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/checked_json.h"

namespace sparsight {
namespace {

namespace fs = std::filesystem;

constexpr const char *kAttackFormat = "sparsight-attack", *kPieces = "pieces", *kAttackLock = "lock";
constexpr int64_t kAttackVersion = 1;
constexpr double kMaxCounted = 1e15;

Json read_attack_json(const std::string& path) {
  std::string problem = "it is of another format";
  auto json = try_parse_checked_object(read_file(path, kMaxJsonBytes), problem);
  if (!json || text(*json, "format") != kAttackFormat)
    fail(printable(path), " is damaged (", problem, "); remove its folder and attack again");
  if (const auto version = number(*json, "version"); !version || *version < 1 || *version > kAttackVersion)
    fail(printable(path), " is of another version than the ", kAttackVersion, " that this program reads");
  return std::move(*json);
}

// The member or entry of `json` at `key`; null if there is none.
Json at_key(const Json& json, const std::string& key) {
  if (json.is_object()) return json.value(key, Json());
  const auto index = static_cast<size_t>(std::atoll(key.c_str()));
  return json.is_array() && index < json.size() ? json[index] : Json();
}

// Raises Error for the first value that differs.
void check_identity(const std::string& folder, const Json& found, const Json& wanted, const std::string& under) {
  for (const auto& [key, value] : wanted.items()) {
    const Json other = at_key(found, key);
    if (other == value) continue;
    const std::string name = under.empty() ? key : under + "." + key;
    if ((value.is_object() && other.is_object()) ||
        (value.is_array() && other.is_array() && value.size() == other.size()))
      check_identity(folder, other, value, name);
    if (value.is_structured() && value.type() == other.type() && value.size() == other.size())
      continue;  // another order
    fail(printable(folder), " holds an attack with ", printable(name), " = ", printable(shown(other)), ", not ",
         printable(shown(value)), "; choose another folder with --out");
  }
}

// What an attack had before there was a choice, which its index therefore does not say.
void add_later_settings(Json& identity) {
  if (!identity.is_object()) return;
  if (!identity.contains("precision")) identity["precision"] = "fp32";
  if (identity.contains("data") && identity["data"].is_object()) identity["data"].emplace("classes", Json());
  if (identity.contains("attack")) add_missing_settings(identity["attack"]);
}

std::string piece_name(int64_t first, int64_t last) {
  char name[64];
  std::snprintf(name, sizeof name, "%s/%09lld-%09lld", kPieces, static_cast<long long>(first),
                static_cast<long long>(last));
  return name;
}

// "A-B" of a piece's folder; nothing for other names.
std::optional<PieceRange> range_of_name(const fs::path& path) {
  const std::string name = path.filename().string();
  PieceRange range;
  range.path = path.string();
  const char *begin = name.data(), *end = name.data() + name.size();
  const auto [dash, error] = std::from_chars(begin, end, range.first);
  if (error != std::errc() || dash == end || *dash != '-') return std::nullopt;
  const auto [stop, other] = std::from_chars(dash + 1, end, range.last);
  if (other != std::errc() || stop != end || range.first < 0 || range.last <= range.first) return std::nullopt;
  return range;
}

}  // namespace

AttackFolder::AttackFolder(const std::string& path, const Json& identity) : path_(path), identity_(identity) {
  std::error_code error;
  made_ = !fs::exists(fs::symlink_status(path, error));
  const fs::path parent = fs::path(path).parent_path();
  made_parent_ = made_ && !parent.empty() && !fs::exists(parent, error);
  if (!made_ && !fs::is_directory(path, error))
    fail_usage("cannot write an attack into ", printable(path), ": it is not a folder; choose another --out");
  create_folder(path);
  const bool begun = fs::exists(file(kAttackIndex), error);
  if (!begun)
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
      if (const std::string name = entry.path().filename().string();
          name != kAttackLock && !is_temporary_for(kAttackIndex, name))
        fail_usage("cannot write an attack into ", printable(path), ": it holds ", printable(name),
                   "; choose a new or empty folder with --out");
  try {
    if (auto lock = FileLock::try_take(file(kAttackLock)))
      lock_.emplace(std::move(*lock));
    else
      fail("another process is writing the attack ", printable(path), "; wait until it ends");
  } catch (const Error&) {
    const bool is_finished = begun && fs::exists(file(kAttackResult), error);
    if (!is_finished) throw;  // a finished one is only read: its disk may be read-only
  }
  if (begun) read_index();
}

AttackFolder::~AttackFolder() {
  std::error_code ignored;
  const auto exists = [&](const char* name) { return fs::exists(file(name), ignored); };
  const bool no_pieces = fs::directory_iterator(file(kPieces), ignored) == fs::directory_iterator();
  const bool nothing_done = begun_here_ && no_pieces && !exists(kAttackResult) && !interrupted();
  if (nothing_done) {
    fs::remove(file(kAttackIndex), ignored);
    fs::remove(file(kPieces), ignored);
  }
  lock_.reset();
  if (!made_ || (batch_ > 0 && !nothing_done)) return;
  fs::remove(path_, ignored);  // only where it is empty
  if (made_parent_) fs::remove(fs::path(path_).parent_path(), ignored);
}

void AttackFolder::read_index() {
  const Json index = read_attack_json(file(kAttackIndex));
  Json identity = index.value("identity", Json());
  add_later_settings(identity);
  check_identity(path_, identity, identity_, "");
  const auto count = [&](const char* key) {
    const double value = number(index, key).value_or(0);
    return value >= 0 && value < kMaxCounted ? static_cast<int64_t>(value) : 0;
  };
  batch_ = count("batch");
  bytes_per_image_ = count("bytes_per_image");
  if (batch_ < 1) fail(printable(file(kAttackIndex)), " is damaged; remove its folder and attack again");
}

void AttackFolder::begin(int64_t batch, int64_t bytes_per_image) {
  SPARSIGHT_CHECK(batch > 0);
  bytes_per_image_ = bytes_per_image;
  const Json index{{"format", kAttackFormat},
                   {"version", kAttackVersion},
                   {"identity", identity_},
                   {"batch", batch},
                   {"bytes_per_image", bytes_per_image}};
  write_file_atomically(file(kAttackIndex), checked_json_file(index));
  batch_ = batch;
  begun_here_ = true;
}

std::vector<PieceRange> AttackFolder::pieces() const {
  std::vector<PieceRange> all, chain;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(file(kPieces), error))
    if (auto range = range_of_name(entry.path())) all.push_back(std::move(*range));
  std::ranges::sort(all, {}, &PieceRange::first);
  for (PieceRange& range : all)
    if (range.first == (chain.empty() ? 0 : chain.back().last)) chain.push_back(std::move(range));
  return chain;
}

std::string AttackFolder::piece_path(int64_t first, int64_t last) const { return file(piece_name(first, last)); }

std::string AttackFolder::state_path(const std::string& folder, int64_t first, int64_t last) {
  return folder + "/" + piece_name(first, last) + ".state";
}

std::optional<Json> AttackFolder::result() const {
  std::error_code error;
  if (!fs::exists(file(kAttackResult), error)) return std::nullopt;
  Json result = read_attack_json(file(kAttackResult));
  if (lock_) remove_pieces();  // those of a process that was killed between the result and their removal
  return result;
}

Json AttackFolder::with_format(const Json& result) {
  Json json{{"format", kAttackFormat}, {"version", kAttackVersion}};
  json.update(result);
  return json;
}

void AttackFolder::finish(const Json& result) const {
  write_file_atomically(file(kAttackResult), checked_json_file(with_format(result)));
  remove_pieces();
}

void AttackFolder::remove_pieces() const {
  std::error_code ignored;
  fs::remove_all(file(kPieces), ignored);
}

}  // namespace sparsight
