#include "sparsight/io/packed_folder.h"

#include <filesystem>
#include <limits>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/options.h"
#include "sparsight/core/printable.h"
#include "sparsight/io/atomic_file.h"
#include "sparsight/io/atomic_folder.h"

namespace sparsight {

namespace fs = std::filesystem;

std::string packed_folder(const std::string& folder) {
  std::error_code error;
  Json files = Json::object();
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    const std::string content = read_file(entry.path().string(), std::numeric_limits<size_t>::max());
    files[entry.path().filename().string()] = Json::binary({content.begin(), content.end()});
  }
  if (error) fail("cannot list the folder ", printable(folder), ": ", error.message());
  const std::vector<uint8_t> packed = Json::to_msgpack(files);
  return {packed.begin(), packed.end()};
}

void unpack_folder(const std::string& folder, const std::string& bytes) {
  const Json files = Json::from_msgpack(bytes.begin(), bytes.end(), /*strict=*/true, /*allow_exceptions=*/false);
  if (!files.is_object()) fail("cannot make ", printable(folder), ": the bytes that came are not a packed folder");
  AtomicFolder made(folder);
  for (const auto& [name, content] : files.items()) {
    if (!content.is_binary() || name != fs::path(name).filename().string() || name == "." || name == "..")
      fail("cannot make ", printable(folder), ": the bytes that came are not a packed folder");
    const auto& file = content.get_binary();
    write_file_atomically(made.aside() + "/" + name, {reinterpret_cast<const char*>(file.data()), file.size()});
  }
  made.commit();
}

}  // namespace sparsight
