#include "sparsight/serve/inference_protocol.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"
#include "sparsight/core/shortened.h"
#include "sparsight/serve/answer_json.h"
#include "sparsight/serve/base64.h"
#include "sparsight/serve/http_error.h"
#include "sparsight/serve/request_reader.h"

namespace sparsight::serve {
namespace {

constexpr const char* kPlatform = "sparsight_frozen";

std::string said(const std::string& text) { return "\"" + printable(shortened(text, 100)) + "\""; }

// A member that must have that type where it is given.
bool read_flag(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (value.is_null()) return false;
  if (!value.is_boolean()) fail_http(400, "the parameter \"", key, "\" is neither true nor false");
  return value.get<bool>();
}

std::string read_text(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key);
  if (!value.is_string()) fail_http(400, where, " has no \"", key, "\", which is a text");
  return value.get<std::string>();
}

const Json& read_list(const Json& object, const char* key, const std::string& where) {
  const Json& value = member(object, key);
  if (!value.is_array()) fail_http(400, where, " has no \"", key, "\", which is a list");
  return value;
}

struct Tensor {
  std::string name, datatype;
  std::vector<int64_t> shape;
  TensorData* data = nullptr;
};

Tensor read_tensor(const Json& json, RequestText& text) {
  if (!json.is_object()) fail_http(400, "an entry of \"inputs\" is not an object");
  Tensor tensor{read_text(json, "name", "an input"), {}, {}, nullptr};
  const std::string where = "the input " + said(tensor.name);
  tensor.datatype = read_text(json, "datatype", where);
  for (const Json& side : read_list(json, "shape", where)) {
    if (!side.is_number_integer() || side.get<int64_t>() < 0 || side.get<int64_t>() > INT32_MAX)
      fail_http(400, where, " has a shape with other values than numbers of rows and columns");
    tensor.shape.push_back(side.get<int64_t>());
  }
  if (member(json, "parameters").contains("binary_data_size"))
    fail_http(400, where, " has binary data; send it as JSON, in \"data\"");
  const Json& data = member(json, "data");
  if (!data.is_number_unsigned()) fail_http(400, where, " has no \"data\", which is a list");
  tensor.data = &text.data.at(data.get<size_t>());
  return tensor;
}

std::string shape_text(const std::vector<int64_t>& shape) {
  std::string text = "[";
  for (size_t i = 0; i < std::min<size_t>(shape.size(), 8); ++i) text += cat(i > 0 ? "," : "", shape[i]);
  return text + (shape.size() > 8 ? ",...]" : "]");
}

void check_datatype(const Tensor& tensor, const std::string& wanted) {
  if (tensor.datatype != wanted)
    fail_http(400, "the input \"", tensor.name, "\" is ", said(tensor.datatype), "; give ", wanted);
}

void check_images(int64_t images, const InferenceLimits& limits) {
  if (images < 1) fail_http(400, "the request has no image; send at least one");
  if (images > limits.max_images)
    fail_http(413, "the request has ", images, " images; send at most ", limits.max_images, " at once");
}

std::vector<ImageRequest> pixel_images(const ServedModel& model, const Tensor& tensor, const InferenceLimits& limits) {
  constexpr float kSlack = 0.01F;  // rounding, and what some resizes add
  check_datatype(tensor, "FP32");
  const engine::Shape& pixels = model.program->pixels();
  const std::vector<int64_t>& shape = tensor.shape;
  if (shape.size() != 4 || shape[1] != pixels.height || shape[2] != pixels.width || shape[3] != pixels.columns)
    fail_http(400, "\"pixels\" has the shape ", shape_text(shape), "; the model takes [B,", pixels.height, ",",
              pixels.width, ",", pixels.columns, "]");
  check_images(shape[0], limits);
  const std::vector<float>& numbers = tensor.data->numbers;
  const int64_t each = pixels.numbers();
  if (!tensor.data->texts.empty() || std::ssize(numbers) != shape[0] * each)
    fail_http(400, "\"pixels\" has ", numbers.size(), " numbers; its shape ", shape_text(shape), " needs ",
              shape[0] * each);
  const auto bad =
      std::ranges::find_if(numbers, [](float value) { return !(value >= -kSlack && value <= 1 + kSlack); });
  if (bad != numbers.end())
    fail_http(400, "\"pixels\" has the value ", *bad, "; give values from 0 to 1 (a byte divided by 255)");
  std::vector<ImageRequest> images;
  for (int64_t i = 0; i < shape[0]; ++i)
    images.push_back({std::vector<float>(numbers.begin() + i * each, numbers.begin() + (i + 1) * each)});
  return images;
}

std::vector<ImageRequest> file_images(const ServedModel& model, const Tensor& tensor, const InferenceLimits& limits) {
  check_datatype(tensor, "BYTES");
  const std::vector<std::string>& texts = tensor.data->texts;
  if (tensor.shape.size() != 1 || tensor.shape[0] != std::ssize(texts) || !tensor.data->numbers.empty())
    fail_http(400, "\"image\" has the shape ", shape_text(tensor.shape), " and ", texts.size(),
              " texts; give [B] and as many files in base64");
  check_images(std::ssize(texts), limits);
  std::vector<ImageRequest> images;
  for (const std::string& text : texts) {
    const std::optional<Bytes> bytes = decode_base64(text);
    if (!bytes) fail_http(400, "\"image\" number ", images.size(), " is not base64");
    images.push_back({prepare_image(model, *bytes, limits.max_pixels).pixels});
  }
  return images;
}

std::vector<std::string> read_outputs(const Json& root) {
  static constexpr std::array kOutputs{"logits", "probabilities", "features"};
  if (!root.contains("outputs")) return {"logits", "probabilities"};
  std::vector<std::string> outputs;
  for (const Json& entry : read_list(root, "outputs", "the request")) {
    const std::string name = read_text(entry, "name", "an output");
    if (std::ranges::find(kOutputs, name) == kOutputs.end())
      fail_http(400, "there is no output ", said(name), "; request logits, probabilities or features");
    if (std::ranges::find(outputs, name) != outputs.end())
      fail_http(400, "the output ", said(name), " is requested twice");
    if (read_flag(member(entry, "parameters"), "binary_data"))
      fail_http(400, "the output ", said(name), " is requested as binary data; only JSON is sent");
    outputs.push_back(name);
  }
  return outputs;
}

std::vector<ImageRequest> read_images(const ServedModel& model, RequestText& text, const InferenceLimits& limits) {
  const Json& inputs = read_list(text.root, "inputs", "the request");
  if (inputs.size() != 1) fail_http(400, "the request has ", inputs.size(), " inputs; give one, pixels or image");
  const Tensor tensor = read_tensor(inputs[0], text);
  if (tensor.name == "pixels") return pixel_images(model, tensor, limits);
  if (tensor.name == "image") return file_images(model, tensor, limits);
  fail_http(400, "there is no input ", said(tensor.name), "; give pixels or image");
}

Json output_tensor(const ServedModel& model, const std::string& name, const std::vector<ImageAnswer>& answers) {
  Json data = Json::array();
  for (const ImageAnswer& answer : answers) {
    if (name == "probabilities")
      for (const double value : class_probabilities(answer.logits, model.program->info.sigmoid))
        data.push_back(static_cast<float>(value));
    else
      for (const float value : name == "logits" ? answer.logits : answer.features) data.push_back(value);
  }
  const int64_t columns = name == "features" ? model.program->feature_width() : model.program->classes();
  return {{"name", name}, {"datatype", "FP32"}, {"shape", {answers.size(), columns}}, {"data", std::move(data)}};
}

Json tensor_metadata(const char* name, const char* datatype, std::vector<int64_t> shape) {
  return {{"name", name}, {"datatype", datatype}, {"shape", std::move(shape)}};
}

}  // namespace

InferenceRequest read_inference(const ServedModel& model, std::string_view body, const InferenceLimits& limits,
                                bool explain) {
  RequestText text = read_request(body, limits.max_images * model.program->pixels().numbers());
  InferenceRequest request;
  if (const Json& id = member(text.root, "id"); id.is_string())
    request.id = id.get<std::string>();
  else if (!id.is_null())
    fail_http(400, "the \"id\" of the request is not a text");
  request.outputs = read_outputs(text.root);
  request.explain = read_flag(member(text.root, "parameters"), "explain") || explain;
  request.images = read_images(model, text, limits);
  const bool features = std::ranges::find(request.outputs, "features") != request.outputs.end();
  for (ImageRequest& image : request.images) image.wanted = {features, request.explain};
  return request;
}

Json inference_json(const ServedModel& model, const InferenceRequest& request,
                    const std::vector<ImageAnswer>& answers) {
  Json json{{"model_name", model.name}, {"model_version", "1"}};
  if (!request.id.empty()) json["id"] = request.id;
  json["outputs"] = Json::array();
  for (const std::string& name : request.outputs) json["outputs"].push_back(output_tensor(model, name, answers));
  if (!request.explain) return json;
  json["routing"] = Json::array();
  for (const ImageAnswer& answer : answers) json["routing"].push_back(routing_json(answer));
  return json;
}

Json server_metadata(const ServedModel& model) {
  return {{"name", "sparsight"},
          {"version", SPARSIGHT_VERSION},
          {"extensions", Json::array({"explain"})},
          {"models", Json::array({model.name})}};
}

Json model_metadata(const ServedModel& model) {
  const engine::Program& program = *model.program;
  const engine::Shape& pixels = program.pixels();
  Json inputs = Json::array({tensor_metadata("pixels", "FP32", {-1, pixels.height, pixels.width, pixels.columns})});
  if (model.takes_images()) inputs.push_back(tensor_metadata("image", "BYTES", {-1}));
  Json outputs = Json::array();
  for (const char* name : {"logits", "probabilities"})
    outputs.push_back(tensor_metadata(name, "FP32", {-1, program.classes()}));
  outputs.push_back(tensor_metadata("features", "FP32", {-1, program.feature_width()}));
  Json layers = Json::array();
  for (const engine::RouteStep* step : program.routes()) layers.push_back(step->layer());
  Json classes = Json::array();
  for (int64_t k = 0; k < program.classes(); ++k) classes.push_back(model.class_name(k));
  return {{"name", model.name},
          {"versions", Json::array({"1"})},
          {"platform", kPlatform},
          {"inputs", std::move(inputs)},
          {"outputs", std::move(outputs)},
          {"parameters",
           {{"classes", std::move(classes)}, {"layers", std::move(layers)}, {"weight_bytes", program.bytes()}}}};
}

}  // namespace sparsight::serve
