#include "sparsight/serve/service.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <thread>

#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/shortened.h"
#include "sparsight/serve/access_token.h"
#include "sparsight/serve/answer_json.h"
#include "sparsight/serve/http_error.h"
#include "sparsight/serve/page.h"
#include "sparsight/serve/visible_region.h"

namespace sparsight::serve {

namespace {

constexpr const char* kOtherRoute = "other";

HttpAnswer json_answer(const Json& json) { return {.body = json_text(json) + "\n"}; }

std::function<HttpAnswer(const Gauges&)> always(const HttpAnswer& answer) {
  return [answer](const Gauges&) { return answer; };
}

HttpAnswer page_answer(const char* type, std::string_view text) {
  return {.type = type,
          .body = std::string(text),
          .headers = {{"Content-Security-Policy",
                       "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' "
                       "data: blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
                       "frame-ancestors 'none'"},
                      {"X-Content-Type-Options", "nosniff"},
                      {"Referrer-Policy", "no-referrer"},
                      {"Cache-Control", "no-cache"}}};
}

std::string query_text(const HttpRequest& request, const std::string& key, const std::string& otherwise) {
  const auto [begin, end] = request.query.equal_range(key);
  if (begin == end) return otherwise;
  if (std::next(begin) != end) fail_http(400, "\"", key, "\" is given twice");
  return begin->second;
}

int64_t query_number(const HttpRequest& request, const std::string& key, int64_t otherwise, int64_t most) {
  const std::string text = query_text(request, key, std::to_string(otherwise));
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1 || value > most)
    fail_http(400, key, "=", printable(shortened(text, 100)), ": give a number from 1 to ", most);
  return value;
}

bool query_flag(const HttpRequest& request, const std::string& key) {
  const std::string text = query_text(request, key, "false");
  if (text != "true" && text != "false" && text != "1" && text != "0")
    fail_http(400, key, "=", printable(shortened(text, 100)), ": give true or false");
  return text == "true" || text == "1";
}

int64_t decoders() { return std::max<int64_t>(2, std::thread::hardware_concurrency()); }

class Permit {
 public:
  explicit Permit(std::counting_semaphore<>& semaphore) : semaphore_(semaphore) { semaphore_.acquire(); }
  ~Permit() { semaphore_.release(); }
  Permit(const Permit&) = delete;
  Permit& operator=(const Permit&) = delete;

 private:
  std::counting_semaphore<>& semaphore_;
};

ServiceOptions checked(ServiceOptions options, const ServedModel& model) {
  if (model.mixes_images) options.batches.max_batch = 1;  // answers must not depend on other requests
  return options;
}

}  // namespace

HttpAnswer error_answer(int status, const std::string& message) {
  HttpAnswer answer = json_answer({{"error", printable(message)}});
  answer.status = status;
  if (status == 503) answer.headers = {{"Retry-After", "1"}};
  if (status == 401) answer.headers = {{"WWW-Authenticate", "Bearer realm=\"sparsight\""}};
  return answer;
}

Service::Service(ServedModel model, const ServiceOptions& options)
    : model_(std::move(model)),
      options_(checked(options, model_)),
      runner_(model_, options_.threads, metrics_),
      decoders_(decoders()),
      routes_(make_routes()),
      batcher_([this](const std::vector<const ImageRequest*>& batch) { return runner_.run(batch); }, options_.batches) {
}

std::vector<Service::Route> Service::make_routes() {
  const std::string model = "/v2/models/" + model_.name;
  const auto inference = [this](bool explain) {
    return [this, explain](const HttpRequest&, const std::string& body) { return infer(body, explain); };
  };
  return {
      {"/", true, always(page_answer("text/html; charset=utf-8", assets::serve_page()))},
      {"/page.css", true, always(page_answer("text/css; charset=utf-8", assets::serve_style()))},
      {"/page.js", true, always(page_answer("text/javascript; charset=utf-8", assets::serve_script()))},
      {"/v2/health/live", true, always(json_answer({{"live", true}}))},
      {"/v2/health/ready", true, always(json_answer({{"ready", true}, {"needs_token", !options_.token.empty()}}))},
      {"/v2", false, always(json_answer(server_metadata(model_)))},
      {model, false, always(json_answer(model_metadata(model_)))},
      {model + "/ready", false, always(json_answer({{"name", model_.name}, {"ready", true}}))},
      {"/metrics", false, [this](const Gauges& now) { return metrics_text(now); }},
      {model + "/infer", false, {}, inference(false)},
      {model + "/explain", false, {}, inference(true)},
      {"/predict",
       false,
       {},
       [this](const HttpRequest& request, const std::string& body) { return predict(request, body); }},
  };
}

const Service::Route* Service::find(const std::string& path) const {
  const auto found = std::ranges::find(routes_, path, &Route::path);
  return found == routes_.end() ? nullptr : &*found;
}

std::string Service::route_name(const HttpRequest& request) const {
  const Route* route = find(request.path);
  return route ? route->path : kOtherRoute;
}

std::optional<HttpAnswer> Service::answer_head(const HttpRequest& request, const Gauges& now) const {
  const Route* route = find(request.path);
  if (!(route && route->open) && !options_.token.empty() && !is_authorized(request.authorization, options_.token))
    return error_answer(401, "a token is needed; send it as \"Authorization: Bearer TOKEN\"");
  if (!route) {
    const std::string path = printable(shortened(request.path, 100));
    return error_answer(404, cat("there is nothing at ", path, "; the model is ", "/v2/models/", model_.name));
  }
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (!(route->get ? reads : request.method == "POST")) {
    HttpAnswer answer = error_answer(405, cat(route->path, " takes ", route->allowed(), ", not ", request.method));
    answer.headers.emplace_back("Allow", route->allowed());
    return answer;
  }
  if (!route->get) return std::nullopt;
  return route->get(now);
}

HttpAnswer Service::answer_body(const HttpRequest& request, const std::string& body) {
  try {
    return find(request.path)->post(request, body);
  } catch (const HttpError& error) {
    return error_answer(error.status(), error.what());
  } catch (const std::bad_alloc&) {
    return error_answer(503, "there is not enough memory for the request; try again later");
  } catch (const std::exception& error) {
    return error_answer(500, error.what());
  }
}

std::vector<ImageAnswer> Service::answers(std::vector<ImageRequest> images) {
  std::vector<ImageAnswer> answers = batcher_.answer(std::move(images), Batcher::Clock::now() + options_.timeout);
  for (const ImageAnswer& answer : answers)
    if (!answer.problem.empty()) throw HttpError(500, answer.problem);
  return answers;
}

HttpAnswer Service::predict(const HttpRequest& request, const std::string& body) {
  constexpr int64_t kTop = 3, kMaxTop = 1'000'000;
  const int64_t top = query_number(request, "top", kTop, kMaxTop);
  const bool explain = query_flag(request, "explain");
  const std::string name = query_text(request, "name", "image");
  PreparedImage image;
  {
    const Permit permit(decoders_);
    image = prepare_image(model_, {reinterpret_cast<const uint8_t*>(body.data()), body.size()}, options_.max_pixels);
  }
  std::vector<ImageRequest> images;
  images.push_back({std::move(image.pixels), {.features = false, .chosen = explain}});
  const ImageAnswer answer = std::move(answers(std::move(images)).front());
  Json json = to_json(prediction_summary(model_, answer, printable(name), top));
  if (explain) {
    json["routing"] = routing_json(answer);
    json["region"] = visible_region(*model_.program->info.preprocessing, image.picture_width, image.picture_height);
  }
  return json_answer(json);
}

HttpAnswer Service::infer(const std::string& body, bool explain) {
  InferenceRequest request;
  {
    const Permit permit(decoders_);
    request = read_inference(model_, body, {options_.batches.max_queue, options_.max_pixels}, explain);
  }
  const std::vector<ImageAnswer> all = answers(std::move(request.images));
  return json_answer(inference_json(model_, request, all));
}

HttpAnswer Service::metrics_text(Gauges now) const {
  now.waiting_images = batcher_.waiting();
  return {.type = "text/plain; version=0.0.4; charset=utf-8", .body = metrics_.text(now)};
}

}  // namespace sparsight::serve
