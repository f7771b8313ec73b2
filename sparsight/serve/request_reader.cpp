#include "sparsight/serve/request_reader.h"

#include <algorithm>

#include "sparsight/core/printable.h"
#include "sparsight/core/shortened.h"
#include "sparsight/serve/http_error.h"

namespace sparsight::serve {
namespace {

constexpr size_t kMaxDepth = 8, kMaxValues = 2000, kMaxNameBytes = 1000;

// Builds a request from the parser's events, on a stack of its own.
class RequestBuilder : public nlohmann::json_sax<Json> {
 public:
  explicit RequestBuilder(int64_t max_numbers) : max_numbers_(static_cast<size_t>(max_numbers)) {}

  RequestText& request() { return request_; }

  bool null() override { return leaf(nullptr); }
  bool boolean(bool value) override { return leaf(value); }
  bool number_integer(number_integer_t value) override { return number(static_cast<double>(value), value); }
  bool number_unsigned(number_unsigned_t value) override { return number(static_cast<double>(value), value); }
  bool number_float(number_float_t value, const string_t&) override { return number(value, value); }
  bool binary(binary_t&) override { fail_http(400, "the request is not JSON"); }

  bool string(string_t& value) override {
    if (data_depth_ > 0) {
      request_.data.back().texts.push_back(std::move(value));
      if (request_.data.back().texts.size() > kMaxValues)
        fail_http(413, "a tensor has more than ", kMaxValues, " texts; send fewer images at once");
      return true;
    }
    if (value.size() > kMaxNameBytes)
      fail_http(400, "the request has a text of ", value.size(), " bytes outside of \"data\"; allowed are ",
                kMaxNameBytes);
    return leaf(std::move(value));
  }

  bool start_array(size_t) override {
    if (data_depth_ > 0 || is_data()) {
      if (data_depth_ == 0) start_data();
      if (++data_depth_ > kMaxDepth) fail_depth();
      return true;
    }
    return open(Json::array());
  }
  bool end_array() override {
    if (data_depth_ > 0) {
      --data_depth_;
      return true;
    }
    open_.pop_back();
    return true;
  }
  bool start_object(size_t) override {
    if (data_depth_ > 0) fail_data();
    return open(Json::object());
  }
  bool end_object() override {
    open_.pop_back();
    return true;
  }

  bool key(string_t& name) override {
    if (name.size() > kMaxNameBytes) fail_http(400, "the request has a key of ", name.size(), " bytes");
    if (open_.back()->contains(name))
      fail_http(400, "the request has the key \"", printable(shortened(name, 100)), "\" twice in one object");
    name_ = std::move(name);
    return true;
  }

  bool parse_error(size_t position, const std::string&, const nlohmann::detail::exception&) override {
    fail_http(400, "the request is not JSON (byte ", position, ")");
  }

 private:
  [[noreturn]] static void fail_depth() { fail_http(400, "the request nests deeper than ", kMaxDepth, " levels"); }
  [[noreturn]] static void fail_data() {
    fail_http(400, "\"data\" of an input has other values than numbers and texts");
  }

  // Whether the next value is that of inputs[i].data.
  bool is_data() const {
    return open_.size() == 3 && open_.back()->is_object() && name_ == "data" && request_.root.contains("inputs") &&
           open_[1] == &request_.root["inputs"];
  }

  void start_data() {
    add(request_.data.size());
    request_.data.emplace_back();
  }

  template <class Value>
  bool number(double value, Value exact) {
    if (data_depth_ == 0) return leaf(exact);
    std::vector<float>& numbers = request_.data.back().numbers;
    if (numbers.size() == max_numbers_)
      fail_http(413, "a tensor has more than ", max_numbers_, " numbers; send fewer images at once");
    numbers.push_back(static_cast<float>(value));
    return true;
  }

  Json* add(Json value) {
    if (++values_ > kMaxValues) fail_http(400, "the request has more than ", kMaxValues, " values outside of \"data\"");
    if (open_.empty()) return &(request_.root = std::move(value));
    Json& parent = *open_.back();
    if (parent.is_array()) {
      parent.push_back(std::move(value));
      return &parent.back();
    }
    return &(parent[name_] = std::move(value));
  }

  bool leaf(Json value) {
    if (data_depth_ > 0) fail_data();
    if (is_data()) fail_http(400, "\"data\" of an input is not a list");
    add(std::move(value));
    return true;
  }

  bool open(Json value) {
    if (open_.size() == kMaxDepth) fail_depth();
    open_.push_back(add(std::move(value)));
    return true;
  }

  const size_t max_numbers_;
  RequestText request_;
  std::vector<Json*> open_;
  std::string name_;  // of the next value
  size_t data_depth_ = 0, values_ = 0;
};

}  // namespace

RequestText read_request(std::string_view text, int64_t max_numbers) {
  RequestBuilder builder(max_numbers);
  Json::sax_parse(text.begin(), text.end(), &builder);
  if (!builder.request().root.is_object()) fail_http(400, "the request is not a JSON object");
  return std::move(builder.request());
}

}  // namespace sparsight::serve
