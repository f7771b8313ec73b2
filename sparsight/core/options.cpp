#include "sparsight/core/options.h"

#include <cmath>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/nearest_name.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

std::string value_kind(const Json& value) {
  if (value.is_boolean()) return "a bool";
  if (value.is_number_integer()) return "an integer";
  if (value.is_number()) return "a number";
  if (value.is_string()) return "a string";
  if (value.is_array()) return "a list";
  if (value.is_object()) return "a table";
  return "nothing";
}

[[noreturn]] void wrong_type(const Json& value, const std::string& wanted) {
  fail_usage("must be ", wanted, ", got ", value_kind(value), ": ", shown(value));
}

template <class T>
std::string range_text(const Bounds<T>& bounds) {
  const bool low = bounds.low != Bounds<T>{}.low, high = bounds.high != Bounds<T>{}.high;
  if (low && high) return cat(bounds.low, " to ", bounds.high);
  if (low) return cat("at least ", bounds.low);
  if (high) return cat("at most ", bounds.high);
  return "";
}

template <class T>
[[noreturn]] void fail_range(const Bounds<T>& bounds, T value) {
  const bool both = bounds.low != Bounds<T>{}.low && bounds.high != Bounds<T>{}.high;
  fail_usage("must be ", both ? "from " : "", range_text(bounds), ", got ", value);
}

template <class T>
T in_bounds(T value, const Bounds<T>& bounds) {
  if (!(value >= bounds.low && value <= bounds.high)) fail_range(bounds, value);
  return value;
}

int64_t to_integer(const Json& value, const Bounds<int64_t>& bounds) {
  if (!value.is_number_integer()) wrong_type(value, "an integer");
  return in_bounds(value.get<int64_t>(), bounds);
}

double to_real(const Json& value, const Bounds<double>& bounds) {
  if (!value.is_number()) wrong_type(value, "a number");
  const double number = value.get<double>();
  if (!std::isfinite(number)) fail_usage("must be finite, got ", number);
  return in_bounds(number, bounds);
}

std::string to_text(const Json& value) {
  if (!value.is_string()) wrong_type(value, "a string");
  return value.get<std::string>();
}

std::string to_choice(const Json& value, const std::vector<std::string>& allowed) {
  const std::string got = to_text(value);
  for (const std::string& name : allowed)
    if (name == got) return got;
  fail_usage("must be one of ", join(allowed), ", got \"", printable(got), "\"",
             did_you_mean(nearest_name(got, allowed)));
}

template <class Convert>
auto to_list(const Json& value, Convert convert) {
  if (!value.is_array()) wrong_type(value, "a list");
  std::vector<decltype(convert(value))> list;
  for (const Json& entry : value) list.push_back(convert(entry));
  return list;
}

}  // namespace

Option& OptionSet::add(Option option) {
  if (find(option.name)) fail_usage("the setting \"", option.name, "\" is declared twice; give each its own name");
  options_.push_back(std::move(option));
  return options_.back();
}

const Option* OptionSet::find(const std::string& name) const {
  for (const Option& option : options_)
    if (option.name == name) return &option;
  return nullptr;
}

void OptionSet::flag(const std::string& name, bool* value, const std::string& help) {
  add({name, "bool", "", help,
       [value](const Json& json) {
         if (!json.is_boolean()) wrong_type(json, "true or false");
         *value = json.get<bool>();
       },
       [value] { return Json(*value); }});
}

Option& OptionSet::integer(const std::string& name, int64_t* value, Bounds<int64_t> bounds, const std::string& help) {
  return add({name, "integer", range_text(bounds), help, [=](const Json& json) { *value = to_integer(json, bounds); },
              [value] { return Json(*value); }});
}

Option& OptionSet::real(const std::string& name, double* value, Bounds<double> bounds, const std::string& help) {
  return add({name, "float", range_text(bounds), help, [=](const Json& json) { *value = to_real(json, bounds); },
              [value] { return Json(*value); }});
}

void OptionSet::text(const std::string& name, std::string* value, const std::string& help) {
  add({name, "string", "", help, [=](const Json& json) { *value = to_text(json); }, [value] { return Json(*value); }});
}

void OptionSet::choice(const std::string& name, std::string* value, const std::vector<std::string>& allowed,
                       const std::string& help) {
  add({name, "string", join(allowed, " | "), help, [=](const Json& json) { *value = to_choice(json, allowed); },
       [value] { return Json(*value); }});
}

void OptionSet::choice_or_floats(const std::string& name, Json* value, const std::vector<std::string>& allowed,
                                 Bounds<double> bounds, const std::string& help) {
  add({name, "string or list of floats", join(allowed, " | ") + " | numbers, " + range_text(bounds), help,
       [=](const Json& json) {
         if (json.is_string())
           *value = to_choice(json, allowed);
         else if (json.is_array())
           *value = to_list(json, [&](const Json& entry) { return to_real(entry, bounds); });
         else
           wrong_type(json, "one of " + join(allowed) + ", or a list of numbers");
       },
       [value] { return *value; }});
}

void OptionSet::integers(const std::string& name, std::vector<int64_t>* value, Bounds<int64_t> bounds,
                         const std::string& help) {
  add({name, "list of integers", range_text(bounds), help,
       [=](const Json& json) { *value = to_list(json, [&](const Json& entry) { return to_integer(entry, bounds); }); },
       [value] { return Json(*value); }});
}

void OptionSet::floats(const std::string& name, std::vector<double>* value, Bounds<double> bounds,
                       const std::string& help) {
  add({name, "list of floats", range_text(bounds), help,
       [=](const Json& json) { *value = to_list(json, [&](const Json& entry) { return to_real(entry, bounds); }); },
       [value] { return Json(*value); }});
}

void OptionSet::strings(const std::string& name, std::vector<std::string>* value, const std::string& help) {
  add({name, "list of strings", "", help, [=](const Json& json) { *value = to_list(json, to_text); },
       [value] { return Json(*value); }});
}

void OptionSet::tables(const std::string& name, Json* value, const std::string& help) {
  if (value->is_null()) *value = Json::array();
  add({name, "list of tables", "", help,
       [value](const Json& json) {
         if (!json.is_array()) wrong_type(json, "a list of tables");
         for (const Json& entry : json)
           if (!entry.is_object()) wrong_type(entry, "a list of tables");
         *value = json;
       },
       [value] { return *value; }});
}

std::string shown(const Json& value) { return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace)); }

void assign(OptionSet& set, const Json& table, const std::string& where) {
  if (table.is_null()) return;  // no settings
  if (!table.is_object()) fail_usage(where, " must be a table, got ", value_kind(table), ": ", shown(table));
  for (const auto& [key, value] : table.items()) {
    const std::string full = where.empty() ? key : where + "." + key;
    const Option* option = set.find(key);
    if (!option) {
      std::vector<std::string> names;
      for (const Option& known : set.options()) names.push_back(known.name);
      fail_usage("unknown setting ", printable(full), suggestion(key, names));
    }
    try {
      option->set(value);
    } catch (const UsageError& error) {
      fail_usage(full, " ", error.what());
    }
  }
}

Json values(const OptionSet& set) {
  Json table = Json::object();
  for (const Option& option : set.options()) table[option.name] = option.get();
  return table;
}

}  // namespace sparsight
