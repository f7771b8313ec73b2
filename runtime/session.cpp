#include "runtime/session.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "runtime/image_pixels.h"
#include "runtime/probabilities.h"
#include "runtime/status.h"

namespace sparsight::runtime {
namespace {

constexpr int64_t kMaxThreads = 1024;
constexpr int64_t kMaxImages = 1 << 16, kMaxRunBytes = int64_t{1} << 40;

bool all_finite(const float* numbers, int64_t count) {
  constexpr uint32_t kExponent = 0x7F800000;  // all ones: infinite or NaN
  bool found = false;                         // no early end: the loop runs in vectors
  for (int64_t i = 0; i < count; ++i) found |= (std::bit_cast<uint32_t>(numbers[i]) & kExponent) == kExponent;
  return !found;
}

void check_result(const sparsight_infer_result& result, int64_t images) {
  if (result.images < images)
    fail_argument("the result has room for ", result.images, " images, ", images, " are classified; set its images");
}

void check_shape(const engine::Program& program, const int64_t* shape) {
  const engine::Shape& pixels = program.pixels();
  if (shape[1] != pixels.height || shape[2] != pixels.width || shape[3] != pixels.columns)
    fail_argument("pixels of the shape [", shape[0], ",", shape[1], ",", shape[2], ",", shape[3],
                  "] were given; the model takes [B,", pixels.height, ",", pixels.width, ",", pixels.columns, "]");
  const int64_t fitting = kMaxRunBytes / std::max<int64_t>(1, program.bytes_per_image() + 4 * pixels.numbers());
  const int64_t most = std::clamp<int64_t>(fitting, 1, kMaxImages);
  if (shape[0] < 1 || shape[0] > most)
    fail_argument("a batch of ", shape[0], " images was given; classify 1 to ", most, " at once");
}

}  // namespace

// One call at a time.
class Session::Use {
 public:
  explicit Use(Session& session) : session_(session) {
    if (session_.in_use_.test_and_set())
      throw StatusError(SPARSIGHT_INFER_BUSY,
                        "the session is in use by another call; give each thread a session of its own");
  }
  ~Use() { session_.in_use_.clear(); }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

 private:
  Session& session_;
};

Session::Session(std::shared_ptr<const Model> model) : model_(std::move(model)) { threads_.emplace(1); }

void Session::check_unused() const {
  if (in_use_.test())
    throw StatusError(SPARSIGHT_INFER_BUSY, "the session is in use by another call; close it when that has ended");
}

void Session::set_threads(int64_t count) {
  const Use use(*this);
  if (count < 1 || count > kMaxThreads) fail_argument(count, " threads were given; allowed are 1 to ", kMaxThreads);
  if (count != threads_->count()) threads_.emplace(count);
}

void Session::set_on_routing(sparsight_infer_on_routing call, void* user) {
  const Use use(*this);
  on_routing_ = call, user_ = user;
}

void Session::classify_pixels(const float* pixels, const int64_t* shape, const sparsight_infer_result& result) {
  const Use use(*this);
  check_shape(model_->program, shape);
  check_result(result, shape[0]);
  if (!all_finite(pixels, shape[0] * model_->program.pixels().numbers()))
    fail_argument("a pixel is not finite (NaN or infinite); give pixels from 0 to 1");
  run(pixels, shape[0], result);
}

void Session::classify_image(const engine::InterleavedView& image, const sparsight_infer_result& result) {
  const Use use(*this);
  check_image(image);
  check_result(result, 1);
  engine::upright_planes(image, 1, image_channels(model_->program), image_);
  write_pixels(image_);
  run(pixels_.data(), 1, result);
}

void Session::classify_encoded(ByteView bytes, const sparsight_infer_result& result) {
  const Use use(*this);
  check_result(result, 1);
  write_pixels(decode_image(bytes, image_channels(model_->program)));
  run(pixels_.data(), 1, result);
}

void Session::write_pixels(const engine::ByteImage& image) {
  const engine::Program& program = model_->program;
  pixels_.resize(static_cast<size_t>(program.pixels().numbers()));
  as_image_errors([&] { program.info.preprocessing->run(image.view(), pixels_.data()); });
}

// Each image is a capacity group of its own, so that images do not crowd out each other's tokens.
void Session::run(const float* pixels, int64_t images, const sparsight_infer_result& result) {
  routings_ = {};
  if (std::ssize(image_groups_) < images) {
    image_numbers_.assign(static_cast<size_t>(images), 0);
    image_groups_.resize(static_cast<size_t>(images));
    std::iota(image_groups_.begin(), image_groups_.end(), 0);
  }
  const engine::Batch batch{pixels, images, image_numbers_.data(), image_groups_.data()};
  const auto after_route = [&](const engine::RouteStep& step, const engine::Routing& routing) {
    const sparsight_infer_routing seen = view(step.number(), routing);
    if (on_routing_(user_, step.number(), &seen) != 0)
      throw StatusError(SPARSIGHT_INFER_STOPPED, "the caller's function stopped the run");
  };
  const engine::Program& program = model_->program;
  const engine::Answer answer =
      on_routing_ ? program.run(memory_, *threads_, batch, after_route) : program.run(memory_, *threads_, batch);
  write_result(answer, images, result);
  routings_ = answer.routings;
}

void Session::write_result(const engine::Answer& answer, int64_t images, const sparsight_infer_result& result) const {
  const engine::Program& program = model_->program;
  const int64_t classes = program.classes(), features = program.feature_width();
  if (!all_finite(answer.logits, images * classes))
    throw StatusError(SPARSIGHT_INFER_NOT_FINITE,
                      "the model's output is not finite; its training failed or the image's values are out of range");
  if (result.logits) std::copy_n(answer.logits, images * classes, result.logits);
  if (result.probabilities)
    for (int64_t i = 0; i < images; ++i)
      write_probabilities(answer.logits + i * classes, classes, program.info.sigmoid,
                          result.probabilities + i * classes);
  if (result.features) std::copy_n(answer.features, images * features, result.features);
}

sparsight_infer_routing Session::routing(int64_t decision) const {
  if (routings_.empty() || decision < 0 || decision >= std::ssize(routings_))
    fail_argument("there is no decision ", decision, "; the last run of this session made ", routings_.size());
  return view(decision, routings_[static_cast<size_t>(decision)]);
}

sparsight_infer_routing Session::view(int64_t decision, const engine::Routing& routing) const {
  return {.layer = model_->program.routes()[static_cast<size_t>(decision)]->layer().c_str(),
          .experts = routing.experts,
          .images = routing.layout.images,
          .tokens_per_image = routing.layout.per_image,
          .prefix_tokens = routing.layout.prefix,
          .grid_height = routing.layout.grid_height,
          .grid_width = routing.layout.grid_width,
          .assignments = routing.assignments(),
          .token = routing.token.data(),
          .expert = routing.expert.data(),
          .gate = routing.gate.data(),
          .kept = reinterpret_cast<const unsigned char*>(routing.kept.data())};
}

}  // namespace sparsight::runtime
