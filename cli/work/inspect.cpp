#include <nlohmann/json.hpp>

#include "cli/cmd_inspect.h"
#include "cli/output.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/printable.h"
#include "sparsight/engine/file/frozen_file.h"
#include "sparsight/engine/steps/experts.h"
#include "sparsight/report/format.h"
#include "sparsight/report/text_table.h"

namespace sparsight::cli {
namespace {

Json step_json(const engine::Step& step) {
  Json json{{"kind", step.kind()}};
  if (const auto* route = dynamic_cast<const engine::RouteStep*>(&step)) {
    json["layer"] = route->layer(), json["router"] = route->router().kind();
    json["experts"] = route->router().experts();
  }
  if (const auto* experts = dynamic_cast<const engine::ExpertsStep*>(&step)) {
    json["layer"] = experts->layer(), json["experts"] = experts->experts().count();
    json["expert_bytes"] = experts->experts().bytes() / experts->experts().count();
  }
  if (const engine::Value& to = step.to(); to.exists()) json["writes"] = {to.shape.rows(), to.shape.columns};
  json["bytes"] = step.bytes();
  return json;
}

Json description(const std::string& path) {
  const std::shared_ptr<const engine::ByteSource> file = engine::open_file(path);
  const engine::FrozenHeader header = engine::read_header(*file);
  const engine::Program program = engine::read_program(file, header);  // verifies all checksums
  Json columns = Json::array(), steps = Json::array();
  for (const engine::FileRange& column : header.columns())
    columns.push_back({{"offset", column.offset}, {"bytes", column.bytes}});
  for (const auto& step : program.steps()) steps.push_back(step_json(*step));
  return {{"file", printable(path)},
          {"version", engine::kFrozenVersion},
          {"bytes", header.file_bytes},
          {"tensors", header.tensors.size()},
          {"images", {program.pixels().rows(), program.pixels().columns}},
          {"classes", program.info.classes},
          {"super_classes", program.info.super_classes},
          {"weight_bytes", program.bytes()},
          {"bytes_per_image", program.bytes_per_image()},
          {"steps", std::move(steps)},
          {"expert_columns", std::move(columns)},
          {"provenance", header.provenance}};
}

std::string cell(const Json& step, const char* key) {
  const Json& value = member(step, key);
  return value.is_null() ? "" : value.is_string() ? printable(value.get<std::string>()) : value.dump();
}

void print(const Json& about) {
  const Json& from = about["provenance"];
  output() << about["file"].get<std::string>() << ": version " << about["version"] << ", "
           << grouped(about["bytes"].get<int64_t>()) << " bytes, " << about["tensors"]
           << " tensors, all with their checksums\n"
           << "of " << printable(text(from, "run")) << ", weights in " << printable(text(from, "weight_type")) << ", "
           << about["classes"].size() << " classes, " << grouped(about["weight_bytes"].get<int64_t>())
           << " bytes of weights, " << grouped(about["bytes_per_image"].get<int64_t>()) << " bytes per image\n";
  if (const auto adds = number(from, "multiply_adds"))
    output() << grouped(static_cast<int64_t>(*adds)) << " multiply-adds per image\n";
  const Json& measured = member(from, "measured");
  if (const auto accuracy = number(measured, "accuracy"))
    output() << "accuracy " << percent(accuracy) << ", in fp32 " << percent(number(measured, "fp32_accuracy"))
             << ", the same class on " << percent(number(measured, "agreement")) << " of "
             << grouped(static_cast<int64_t>(number(measured, "images").value_or(0))) << " images\n";
  Rows rows{{"step", "kind", "layer", "router", "experts", "writes", "bytes"}};
  for (size_t i = 0; i < about["steps"].size(); ++i) {
    const Json& step = about["steps"][i];
    rows.push_back({std::to_string(i), cell(step, "kind"), cell(step, "layer"), cell(step, "router"),
                    cell(step, "experts"), cell(step, "writes"), grouped(step["bytes"].get<int64_t>())});
  }
  output() << "\n" << aligned(rows);
  if (const Json& columns = about["expert_columns"]; !columns.empty())
    output() << "\nexpert columns: " << columns.size() << ", " << grouped(columns[0]["bytes"].get<int64_t>())
             << " bytes each\n";
}

}  // namespace

void run_inspect(const InspectArguments& arguments) {
  const Json about = description(arguments.file);
  if (arguments.json)
    output() << json_text(about, 2) << "\n";
  else
    print(about);
}

}  // namespace sparsight::cli
