// Requests of the Open Inference Protocol, right and wrong ones.
#include "sparsight/serve/inference_protocol.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sparsight/serve/http_error.h"
#include "tests/support/small_vit.h"

namespace sparsight::serve {
namespace {

// Images of 3 x 4 x 4 pixels.
const ServedModel& tiny() {
  static const ServedModel model{
      "tiny", std::make_shared<const engine::Program>(test::make_vit(
                  {.side = 4, .classes = 2, .depth = 1, .width = 8, .heads = 1, .routed = 1, .experts = 2, .k = 1}))};
  return model;
}

constexpr InferenceLimits kLimits{.max_images = 2, .max_pixels = 1 << 20};

Json pixels_request(int64_t images) {
  return {{"inputs", Json::array({{{"name", "pixels"},
                                   {"datatype", "FP32"},
                                   {"shape", {images, 3, 4, 4}},
                                   {"data", std::vector<double>(static_cast<size_t>(images * 48), 0.25)}}})}};
}

// The status and message of a request that is refused.
std::pair<int, std::string> refusal(const std::string& body) {
  try {
    read_inference(tiny(), body, kLimits, false);
  } catch (const HttpError& error) {
    return {error.status(), error.what()};
  }
  return {200, ""};
}

void expect_refused(int status, const std::string& words, const std::string& body) {
  const auto [got, message] = refusal(body);
  EXPECT_EQ(got, status) << body.substr(0, 200) << "\n" << message;
  EXPECT_NE(message.find(words), std::string::npos) << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(InferenceProtocol, ReadsPixels) {
  Json json = pixels_request(2);
  json["id"] = "one";
  json["parameters"] = {{"explain", true}};
  json["outputs"] = Json::array({{{"name", "features"}}});
  json["inputs"][0]["data"][47] = 1;
  const InferenceRequest request = read_inference(tiny(), json.dump(), kLimits, false);
  EXPECT_EQ(request.id, "one");
  EXPECT_TRUE(request.explain);
  EXPECT_EQ(request.outputs, std::vector<std::string>{"features"});
  ASSERT_EQ(request.images.size(), 2U);
  std::vector<float> first(48, 0.25F);
  first[47] = 1;
  EXPECT_EQ(request.images[0].pixels, first);
  EXPECT_EQ(request.images[1].pixels, std::vector<float>(48, 0.25F));
  EXPECT_TRUE(request.images[0].wanted.features && request.images[0].wanted.chosen);
}

TEST(InferenceProtocol, ReadsNestedLists) {
  const std::string row = "[0.5,0.5,0.5,0.5]", plane = "[" + row + "," + row + "," + row + "," + row + "]";
  const std::string body = R"({"inputs":[{"data":[[)" + plane + "," + plane + "," + plane +
                           R"(]],"name":"pixels","datatype":"FP32","shape":[1,3,4,4]}]})";
  const InferenceRequest request = read_inference(tiny(), body, kLimits, false);
  EXPECT_EQ(request.images.at(0).pixels, std::vector<float>(48, 0.5F));
  EXPECT_EQ(request.outputs, (std::vector<std::string>{"logits", "probabilities"}));
}

TEST(InferenceProtocol, RefusesWhatIsNoRequest) {
  for (const char* body : {"", "{", "nothing", "{\"inputs\":[NaN]}", "\xFF\xFE", "{\"inputs\":[1e999]}"})
    expect_refused(400, "is not JSON", body);
  expect_refused(400, "JSON object", "[]");
  expect_refused(400, "no \"inputs\"", "{}");
  expect_refused(400, "0 inputs", R"({"inputs":[]})");
  expect_refused(400, "not an object", R"({"inputs":[1]})");
  expect_refused(400, "twice", R"({"id":"a","id":"b"})");
  expect_refused(400, "deeper", std::string(100'000, '['));
  std::string values = R"({"x":[0)";
  for (int i = 0; i < 3000; ++i) values += ",0";
  expect_refused(400, "values outside", values + "]}");
}

TEST(InferenceProtocol, RefusesWrongTensors) {
  const auto changed = [](const char* key, const Json& value) {
    Json json = pixels_request(1);
    json["inputs"][0][key] = value;
    return json.dump();
  };
  expect_refused(400, "there is no input", changed("name", "picture"));
  expect_refused(400, "give FP32", changed("datatype", "FP64"));
  expect_refused(400, "the model takes [B,3,4,4]", changed("shape", {1, 4, 4, 3}));
  expect_refused(400, "needs 96", changed("shape", {2, 3, 4, 4}));
  expect_refused(413, "at most 2", changed("shape", {1 << 30, 3, 4, 4}));
  expect_refused(400, "shape", changed("shape", {-1, 3, 4, 4}));
  expect_refused(400, "shape", changed("shape", {1.5, 3, 4, 4}));
  expect_refused(400, "no image", changed("shape", {0, 3, 4, 4}));
  expect_refused(400, "not a list", changed("data", 3));
  expect_refused(400, "other values", changed("data", Json::array({nullptr})));
  expect_refused(400, "has the value 255", changed("data", std::vector<double>(48, 255)));
  expect_refused(400, "has the value", changed("data", std::vector<double>(48, 1e300)));
  expect_refused(413, "more than 96 numbers", changed("data", std::vector<double>(97, 0)));
  expect_refused(400, "has 0 numbers", changed("data", std::vector<std::string>(48, "0")));
}

TEST(InferenceProtocol, RefusesWrongFilesAndOutputs) {
  const auto image = [](const Json& data, const Json& shape) {
    return Json{{"inputs", Json::array({{{"name", "image"}, {"datatype", "BYTES"}, {"shape", shape}, {"data", data}}})}}
        .dump();
  };
  expect_refused(400, "not base64", image({"!"}, {1}));
  expect_refused(400, "as many files", image({"Zg=="}, {2}));
  expect_refused(400, "no image", image(Json::array(), {0}));
  Json json = pixels_request(1);
  json["outputs"] = Json::array({{{"name", "loss"}}});
  expect_refused(400, "there is no output \"loss\"", json.dump());
  json["outputs"] = Json::array({{{"name", "logits"}}, {{"name", "logits"}}});
  expect_refused(400, "twice", json.dump());
}

TEST(InferenceProtocol, WritesTensors) {
  InferenceRequest request{.id = "x", .outputs = {"logits", "probabilities", "features"}};
  const std::vector<ImageAnswer> answers(2, {.logits = {0, 0}, .features = std::vector<float>(8, 1.5F)});
  const Json json = inference_json(tiny(), request, answers);
  EXPECT_EQ(json["model_name"], "tiny");
  EXPECT_EQ(json["id"], "x");
  EXPECT_EQ(json["outputs"][1].dump(),
            R"({"name":"probabilities","datatype":"FP32","shape":[2,2],"data":[0.5,0.5,0.5,0.5]})");
  EXPECT_EQ(json["outputs"][2]["shape"], (Json{2, 8}));
  EXPECT_FALSE(json.contains("routing"));
}

TEST(InferenceProtocol, DescribesTheModel) {
  const Json json = model_metadata(tiny());
  EXPECT_EQ(json["inputs"][0].dump(), R"({"name":"pixels","datatype":"FP32","shape":[-1,3,4,4]})");
  EXPECT_EQ(json["outputs"][0].dump(), R"({"name":"logits","datatype":"FP32","shape":[-1,2]})");
}

TEST(ModelName, HasTheCharactersOfAddresses) {
  EXPECT_EQ(model_name("ViT_s.16-a"), "ViT_s.16-a");
  EXPECT_EQ(model_name("a b/c\n\xC3\xA9"), "a-b-c---");
  EXPECT_EQ(model_name(""), "model");
}

}  // namespace
}  // namespace sparsight::serve
