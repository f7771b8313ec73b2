#include "sparsight/core/json_text.h"

#include <set>
#include <vector>

#include <nlohmann/json.hpp>

#include "sparsight/core/error.h"
#include "sparsight/core/printable.h"

namespace sparsight {
namespace {

using Take = std::function<void(const std::string&, const Json&)>;
constexpr size_t kFewKeys = 16;  // up to here a search through all of them is faster than a set

// Builds a value from the parser's events. It has its own stack instead of recursion.
class JsonBuilder : public nlohmann::json_sax<Json> {
 public:
  // take: where it is set, the members of the outermost object go there and are not kept.
  explicit JsonBuilder(const JsonLimits& limits, const Take* take = nullptr) : limits_(limits), take_(take) {}

  Json& root() { return root_; }
  // What is wrong with the text, as a predicate ("is not JSON (byte 17)"); "" if nothing is.
  const std::string& problem() const { return problem_; }

  bool null() override { return leaf(nullptr); }
  bool boolean(bool value) override { return leaf(value); }
  bool number_integer(number_integer_t value) override { return leaf(value); }
  bool number_unsigned(number_unsigned_t value) override { return leaf(value); }
  bool number_float(number_float_t value, const string_t&) override { return leaf(value); }
  bool string(string_t& value) override { return leaf(std::move(value)); }
  bool binary(binary_t&) override { return refuse("is not JSON"); }
  bool start_object(size_t) override { return open(Json::object()); }
  bool start_array(size_t) override { return open(Json::array()); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& name) override {
    Open& object = open_.back();
    if (!streams() && object.names == limits_.keys)
      return refuse(cat("has an object of more than ", limits_.keys, " keys"));
    if (!is_new(object, name))
      return refuse(cat("has the key ", shown(name.size() > 80 ? name.substr(0, 80) + "..." : name), " twice"));
    ++object.names;
    (streams() ? member_name_ : name_) = std::move(name);
    return streams() || count();
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    return refuse(cat("is not JSON (byte ", position, ")"));
  }

 private:
  struct Open {
    Json* value;
    size_t names = 0;
    std::set<std::string> seen{};  // empty while there are few
  };
  using Members = Json::object_t::Container;

  bool refuse(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
    return false;
  }

  bool count() { return ++values_ <= limits_.values || refuse(cat("has more than ", limits_.values, " values")); }

  // Whether the open value is the outermost object of for_each_member().
  bool streams() const { return take_ && open_.size() == 1; }

  bool is_new(Open& object, const std::string& name) {
    if (!object.seen.empty() || streams()) return object.seen.insert(name).second;
    const Members& members = object.value->get_ref<const Json::object_t&>();
    for (const auto& member : members)
      if (member.first == name) return false;
    if (members.size() >= kFewKeys) {
      for (const auto& member : members) object.seen.insert(member.first);
      object.seen.insert(name);
    }
    return true;
  }

  Json* add(Json value) {
    if (open_.empty()) return &(root_ = std::move(value));
    if (streams()) return &(member_ = std::move(value));
    Json& parent = *open_.back().value;
    if (parent.is_array()) {
      auto& list = parent.get_ref<Json::array_t&>();
      list.push_back(std::move(value));
      return &list.back();
    }
    // Straight into the vector below the ordered map, whose own insertion searches for the key.
    Members& members = parent.get_ref<Json::object_t&>();
    members.emplace_back(std::move(name_), std::move(value));
    return &members.back().second;
  }

  bool leaf(Json value) {
    if (take_ && open_.empty()) return refuse("is not a JSON object");
    if (!count()) return false;
    add(std::move(value));
    return deliver();
  }

  bool open(Json value) {
    if (take_ && open_.empty() && !value.is_object()) return refuse("is not a JSON object");
    if (open_.size() == limits_.depth) return refuse(cat("nests deeper than ", limits_.depth, " levels"));
    const bool is_streamed = take_ && open_.empty();  // limits are those of its members
    if (!is_streamed && !count()) return false;
    open_.push_back({add(std::move(value))});
    return true;
  }

  bool close() {
    open_.pop_back();
    return deliver();
  }

  bool deliver() {
    if (!streams()) return true;
    (*take_)(member_name_, member_);
    member_ = Json();
    values_ = 0;
    return true;
  }

  const JsonLimits limits_;
  const Take* const take_;
  Json root_, member_;
  std::string name_, member_name_;  // of the next value, and of the one that is delivered
  std::vector<Open> open_;
  size_t values_ = 0;
  std::string problem_;
};

std::string read_into(JsonBuilder& builder, std::string_view text) {
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.problem();
}

}  // namespace

Json parse_json(std::string_view text, const std::string& what, const JsonLimits& limits) {
  JsonBuilder builder(limits);
  if (const std::string problem = read_into(builder, text); !problem.empty()) fail(printable(what), " ", problem);
  return std::move(builder.root());
}

Json parse_json_object(std::string_view text, const std::string& what, const JsonLimits& limits) {
  Json value = parse_json(text, what, limits);
  if (!value.is_object()) fail(printable(what), " is not a JSON object");
  return value;
}

std::optional<Json> try_parse_json_object(std::string_view text, const JsonLimits& limits) {
  JsonBuilder builder(limits);
  if (!read_into(builder, text).empty() || !builder.root().is_object()) return std::nullopt;
  return std::move(builder.root());
}

void for_each_member(std::string_view text, const std::string& what, const JsonLimits& limits, const Take& take) {
  JsonBuilder builder(limits, &take);
  if (const std::string problem = read_into(builder, text); !problem.empty()) fail(printable(what), " ", problem);
}

size_t json_memory(const Json& value) {
  constexpr size_t kBlock = 16;  // what the allocator adds
  size_t bytes = sizeof(Json);
  if (value.is_string()) bytes += kBlock + sizeof(std::string) + value.get_ref<const std::string&>().size();
  if (value.is_structured()) bytes += 2 * kBlock + sizeof(Json::array_t);
  if (value.is_object())
    for (const auto& [key, member] : value.get_ref<const Json::object_t&>())
      bytes += sizeof(std::string) + key.size() + json_memory(member);
  if (value.is_array())
    for (const Json& entry : value) bytes += json_memory(entry);
  return bytes;
}

}  // namespace sparsight
