// Settings declared once: name, type, default, bounds and one line of help. From that line come the TOML key, the
// --set flag, the check, the saved copy and the documentation table.
//
//   struct SgdOptions {
//     double momentum = 0.9;
//     void declare(OptionSet& set) { set.real("momentum", &momentum, {0, 1}, "momentum coefficient"); }
//   };
//
// The default is whatever the bound variable holds when it is declared.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace sparsight {

using Json = nlohmann::ordered_json;

// An inclusive range of allowed numbers.
template <class T>
struct Bounds {
  T low = std::numeric_limits<T>::lowest();
  T high = std::numeric_limits<T>::max();
};

// Where a random search samples a setting from.
struct SearchRange {
  std::string name;   // the setting's name in the protocol of the search: "irm_lambda"; "": it is not searched
  std::string range;  // "10^U(-1,5)": dg/random_range.h
  // For images of 28 x 28 pixels, where they differ; "" and NaN: they do not.
  std::string small_range = {};
  double small_default = std::numeric_limits<double>::quiet_NaN();
};

// One declared setting, bound to a variable of an options struct.
struct Option {
  std::string name;
  std::string type;     // "bool", "integer", "float", "string", "list of integers", ...
  std::string allowed;  // "0 to 1", or "" where everything of the type is allowed
  std::string help;
  std::function<void(const Json&)> set;  // throws UsageError with a message that starts after the key
  std::function<Json()> get;
  SearchRange search = {};
  bool live = false;  // may change between two passes, so that it can follow a schedule
};

class OptionSet {
 public:
  void flag(const std::string& name, bool* value, const std::string& help);
  // The option that was added: `.live = true` where it may follow a schedule.
  Option& integer(const std::string& name, int64_t* value, Bounds<int64_t> bounds, const std::string& help);
  Option& real(const std::string& name, double* value, Bounds<double> bounds, const std::string& help);
  void text(const std::string& name, std::string* value, const std::string& help);
  void choice(const std::string& name, std::string* value, const std::vector<std::string>& allowed,
              const std::string& help);
  // One of `allowed`, or a list of numbers.
  void choice_or_floats(const std::string& name, Json* value, const std::vector<std::string>& allowed,
                        Bounds<double> bounds, const std::string& help);
  void integers(const std::string& name, std::vector<int64_t>* value, Bounds<int64_t> bounds, const std::string& help);
  void floats(const std::string& name, std::vector<double>* value, Bounds<double> bounds, const std::string& help);
  void strings(const std::string& name, std::vector<std::string>* value, const std::string& help);
  // A list of tables, each naming a component with its settings, such as a pipeline of transforms:
  // [{op = "resize", size = 32}, ...]. The owner of the list checks the entries.
  void tables(const std::string& name, Json* value, const std::string& help);

  // An option of another set, perhaps renamed.
  void include(Option option) { add(std::move(option)); }

  const std::vector<Option>& options() const { return options_; }
  const Option* find(const std::string& name) const;

 private:
  Option& add(Option option);
  std::vector<Option> options_;
};

// A value as errors show it: JSON in one line of valid UTF-8, even if its strings are not.
std::string shown(const Json& value);

// Sets the options of `set` from `table` ({"momentum": 0.9}); `where` ("optimizer") names the table in errors. A key
// that is not declared raises UsageError naming the nearest one.
void assign(OptionSet& set, const Json& table, const std::string& where);

// The current values of all options, in declaration order.
Json values(const OptionSet& set);

}  // namespace sparsight
