// The input is lines after --set, over a configuration file with a [train] section; what is accepted must survive being
// written to config.toml and read again.
#include <nlohmann/json.hpp>
#include <sstream>

#include "sparsight/core/config.h"
#include "sparsight/core/toml.h"
#include "tests/fuzz/fuzz.h"

using namespace sparsight;

namespace {

struct TrainLike {
  int64_t epochs = 1;
  double lr = 0.1;
  bool flag = false;
  std::string name = "x";
  std::vector<int64_t> integers;
  std::vector<double> floats;
  std::vector<std::string> strings;
  Json tables = Json::array();

  void declare(OptionSet& set) {
    set.integer("epochs", &epochs, {1, 1000}, "integer");
    set.real("lr", &lr, {0, 1}, "real");
    set.flag("flag", &flag, "flag");
    set.choice("name", &name, {"x", "y"}, "choice");
    set.integers("integers", &integers, {}, "integers");
    set.floats("floats", &floats, {}, "floats");
    set.strings("strings", &strings, "strings");
    set.tables("tables", &tables, "tables");
  }
};

// The tables of TOML have no order. NaN, which is unequal to itself, and text that is not UTF-8 compare as JSON has
// them.
std::string sorted(const Json& tree) {
  return nlohmann::json(tree).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return try_reader([&] {
    Config config = Config::from_text("[train]\nepochs = 3\n", "x");
    std::istringstream lines{std::string(as_text(data, size))};
    for (std::string line; std::getline(lines, line);) config.set(line);
    const std::string written = to_toml(config.tree());
    if (sorted(parse_toml(written, "written").tree) != sorted(config.tree())) {
      std::fprintf(stderr, "comes back changed: %s\n", written.c_str());
      std::abort();
    }
    resolve(config, {plain_section<TrainLike>("train", "settings")});
  });
}
