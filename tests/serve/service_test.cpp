// What is answered at each address, without connections.
#include "sparsight/serve/service.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "sparsight/core/error.h"
#include "sparsight/kernels/isa/isa.h"
#include "tests/support/small_vit.h"

namespace sparsight::serve {
namespace {

// width: 128 has experts of 512 hidden values, which other threads than the server's would split.
ServedModel vit(int64_t width = test::kVitWidth) {
  return {"vit", std::make_shared<const engine::Program>(test::make_vit({.width = width, .per_token = true}))};
}

std::string pixels_body(int64_t seed) {
  Json data = Json::array();
  for (int64_t i = 0; i < 3 * test::kVitSide * test::kVitSide; ++i) data.push_back((i * (2 * seed + 7) % 256) / 255.0);
  return Json{{"inputs", Json::array({{{"name", "pixels"},
                                       {"datatype", "FP32"},
                                       {"shape", {1, 3, test::kVitSide, test::kVitSide}},
                                       {"data", data}}})}}
      .dump();
}

int head_status(const Service& service, const HttpRequest& request) {
  const std::optional<HttpAnswer> answer = service.answer_head(request, {});
  return answer ? answer->status : 0;  // 0: the body is needed
}

TEST(Service, KnowsItsAddresses) {
  const Service service(vit(), {});
  for (const char* path : {"/", "/page.css", "/page.js", "/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/vit",
                           "/v2/models/vit/ready", "/metrics"}) {
    EXPECT_EQ(head_status(service, {"GET", path}), 200) << path;
    EXPECT_EQ(head_status(service, {"POST", path}), 405) << path;
  }
  for (const char* path : {"/predict", "/v2/models/vit/infer", "/v2/models/vit/explain"}) {
    EXPECT_EQ(head_status(service, {"POST", path}), 0) << path;
    EXPECT_EQ(head_status(service, {"GET", path}), 405) << path;
  }
  for (const char* path : {"/v2/models/other", "/../etc/passwd", "", "//", "/predict/"})
    EXPECT_EQ(head_status(service, {"GET", path}), 404) << path;
}

TEST(Service, AsksForItsToken) {
  const Service service(vit(), {.token = "secret"});
  for (const char* path : {"/", "/page.js", "/v2/health/ready"}) EXPECT_EQ(head_status(service, {"GET", path}), 200);
  EXPECT_EQ(head_status(service, {"GET", "/metrics"}), 401);
  EXPECT_EQ(head_status(service, {"GET", "/nothing"}), 401);
  EXPECT_EQ(head_status(service, {"POST", "/predict"}), 401);
  EXPECT_EQ(head_status(service, {"POST", "/predict", {}, "Bearer wrong"}), 401);
  EXPECT_EQ(head_status(service, {"POST", "/predict", {}, "Bearer secret"}), 0);
}

// Images of other requests are in the same batch: with consistent arithmetic they change no bit.
TEST(Service, AnswersTogetherAsAlone) {
  try {
    set_arithmetic("consistent");
  } catch (const UsageError&) {
    GTEST_SKIP() << "this processor has no fused multiply-add";
  }
  constexpr int kClients = 8;
  const HttpRequest request{"POST", "/v2/models/vit/explain"};
  std::vector<std::string> alone, together(kClients);
  {
    Service service(vit(128), {.threads = 2});
    for (int i = 0; i < kClients; ++i) alone.push_back(service.answer_body(request, pixels_body(i)).body);
  }
  Service service(vit(128), {.batches = {.max_delay = std::chrono::milliseconds(200)}, .threads = 2});
  std::vector<std::thread> clients;
  for (int i = 0; i < kClients; ++i)
    clients.emplace_back(
        [&, i] { together[static_cast<size_t>(i)] = service.answer_body(request, pixels_body(i)).body; });
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(together, alone);
  EXPECT_EQ(Json::parse(alone[0])["routing"].size(), 1U);
  EXPECT_EQ(service.metrics().text({}).find("sparsight_batch_images_bucket{le=\"1\"} 8"), std::string::npos);
  set_arithmetic("");
}

TEST(Service, SaysWhatIsWrongInOneLine) {
  Service service(vit(), {.batches = {.max_queue = 4}});
  const auto answer = [&](const HttpRequest& request, const std::string& body) {
    const HttpAnswer answer = service.answer_body(request, body);
    const Json json = Json::parse(answer.body);
    EXPECT_EQ(json.size(), 1U);
    EXPECT_EQ(json.at("error").get<std::string>().find('\n'), std::string::npos);
    return answer.status;
  };
  EXPECT_EQ(answer({"POST", "/predict"}, "no picture"), 400);
  EXPECT_EQ(answer({"POST", "/predict"}, ""), 400);
  EXPECT_EQ(answer({"POST", "/predict", {{"top", "0"}}}, ""), 400);
  EXPECT_EQ(answer({"POST", "/predict", {{"top", "3x"}}}, ""), 400);
  EXPECT_EQ(answer({"POST", "/predict", {{"explain", "maybe"}}}, ""), 400);
  EXPECT_EQ(answer({"POST", "/v2/models/vit/infer"}, "{"), 400);
}

}  // namespace
}  // namespace sparsight::serve
