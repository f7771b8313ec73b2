#include "sparsight/train/named_means.h"

#include <algorithm>
#include <cstdio>
#include <limits>

#include <nlohmann/json.hpp>

namespace sparsight {
namespace {

// JSON has no NaN: it is written as null.
double number_from(const Json& json) {
  return json.is_null() ? std::numeric_limits<double>::quiet_NaN() : json.get<double>();
}

}  // namespace

void NamedMeans::add(const std::string& name, double sum, double count) {
  auto entry = std::ranges::find(entries_, name, &Entry::name);
  if (entry == entries_.end()) entry = entries_.insert(entry, {name});
  entry->sum += sum;
  entry->count += count;
}

void NamedMeans::add(const NamedMeans& other) {
  for (const Entry& entry : other.entries_) add(entry.name, entry.sum, entry.count);
}

std::string NamedMeans::headline() const {
  if (entries_.empty()) return "";
  const Entry& first = entries_.front();
  char number[32];
  std::snprintf(number, sizeof number, " %.3f", first.sum / first.count);
  return first.name + number;
}

void NamedMeans::write_to(Json& line) const {
  for (const Entry& entry : entries_) {
    const size_t slash = entry.name.find('/');
    Json& target =
        slash == std::string::npos ? line[entry.name] : line[entry.name.substr(0, slash)][entry.name.substr(slash + 1)];
    target = entry.sum / entry.count;
  }
}

Json NamedMeans::to_json() const {
  Json json = Json::object();
  for (const Entry& entry : entries_) json[entry.name] = {entry.sum, entry.count};
  return json;
}

NamedMeans NamedMeans::from_json(const Json& json) {
  NamedMeans means;
  for (const auto& [name, pair] : json.items()) means.add(name, number_from(pair.at(0)), number_from(pair.at(1)));
  return means;
}

}  // namespace sparsight
