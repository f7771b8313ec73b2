#include "sparsight/infer/frozen_model.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "sparsight/core/config.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"
#include "sparsight/data/data_info_json.h"
#include "sparsight/engine/file/frozen_file.h"
#include "sparsight/engine/file/pack_cache.h"
#include "sparsight/io/run_folder.h"
#include "sparsight/ops/weight_type.h"

namespace sparsight {
namespace {

// The run's name without its folder: the file may go to people who need not know where the run is.
Json provenance(const LoadedModel& loaded, const Json& measured) {
  const std::filesystem::path path(loaded.path);
  return {{"run", printable(path.filename().string())},
          {"sparsight", describe_environment().at("sparsight")},
          {"weights", loaded.weights},
          {"weight_type", loaded.weight_type},
          {"algorithm", loaded.algorithm},
          {"config", loaded.config},
          {"state",
           {{"step", loaded.step},
            {"data", to_json(loaded.data)},
            {"image", {loaded.shape.channels, loaded.shape.height, loaded.shape.width}}}},
          {"mixes_images", loaded.mixes_images},
          {"multiply_adds", loaded.multiply_adds},
          {"parameters", {{"other", loaded.expert_weights.other}, {"of_expert", loaded.expert_weights.of_expert}}},
          {"measured", measured}};
}

void check_overrides(const std::string& path, const std::vector<std::string>& overrides) {
  for (const std::string& assignment : overrides) {
    const std::string section = assignment.substr(0, assignment.find('.'));
    if (std::ranges::none_of(std::array{"data", "loader", "run"}, [&](const char* name) { return section == name; }))
      fail_usage(printable(path), " is a frozen model, whose [", printable(section),
                 "] stays as it is; export the run again with --set ", printable(assignment));
  }
}

// Raises Error unless the program takes the images and has the classes that the rest of the file tells.
void check_same_model(const LoadedModel& loaded, const engine::Program& program) {
  const ImageShape& shape = loaded.shape;
  if (program.pixels().rows() != shape.channels * shape.height || program.pixels().columns != shape.width ||
      program.classes() != shape.classes || std::ssize(loaded.data.classes) != shape.classes)
    fail("its program is of another model than its description");
}

ExpertWeights read_parameters(const Json& json) {
  ExpertWeights weights{json.at("other").get<int64_t>(), {}};
  for (const auto& [layer, count] : json.at("of_expert").items()) weights.of_expert[layer] = count.get<int64_t>();
  return weights;
}

}  // namespace

bool is_frozen_model(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  try {
    return engine::begins_as_frozen(*engine::open_file(path));
  } catch (const Error&) {
    return false;
  }
}

void write_frozen_model(const LoadedModel& loaded, const Json& measured, const std::string& path, Existing existing) {
  SPARSIGHT_CHECK(loaded.program);
  AtomicFile file(path, existing);
  engine::write_program(loaded.program->program(), provenance(loaded, measured),
                        [&](const void* data, size_t bytes) { file.write(data, bytes); });
  file.commit();
}

bool is_frozen_from(const std::string& path, const LoadedModel& loaded, const std::string& weight_type) {
  if (!is_frozen_model(path)) return false;
  const Json wanted = provenance(loaded, {});
  try {
    const Json about = engine::read_header(*engine::open_file(path)).provenance;
    return member(about, "weight_type") == weight_type &&
           std::ranges::all_of(std::array{"run", "sparsight", "weights", "algorithm", "config", "state"},
                               [&](const char* name) { return member(about, name) == member(wanted, name); });
  } catch (const Error&) {
    return false;  // it is damaged, or of another version
  }
}

engine::Program read_frozen_program(const std::string& path, std::shared_ptr<const engine::ByteSource> file,
                                    const engine::FrozenHeader& header, bool pack_cache) {
  engine::Program program = engine::read_program(std::move(file), header, {}, pack_cache ? path : "");
  if (program.packed && !program.packed->failure().empty())
    log_warning("packed weights are not kept: ", program.packed->failure());
  return program;
}

LoadedModel load_frozen_model(const std::string& path, const std::vector<std::string>& overrides, bool pack_cache) {
  check_overrides(path, overrides);
  const std::shared_ptr<const engine::ByteSource> file = engine::open_file(path);
  const engine::FrozenHeader header = engine::read_header(*file);
  engine::Program program = read_frozen_program(path, file, header, pack_cache);
  const Json& about = header.provenance;
  try {
    const Checkpoint description{{}, {}, about.at("config"), about.at("state")};
    LoadedModel loaded = described_model(description, path, overrides);
    check_same_model(loaded, program);
    loaded.algorithm = text(about, "algorithm"), loaded.weights = text(about, "weights");
    loaded.weight_type = text(about, "weight_type");
    if (loaded.weight_type != "auto") parse_weight_type(loaded.weight_type);
    loaded.mixes_images = about.at("mixes_images").get<bool>();
    loaded.multiply_adds = about.at("multiply_adds").get<int64_t>();
    loaded.expert_weights = read_parameters(about.at("parameters"));
    loaded.program = std::make_shared<const ProgramModel>(std::move(program), loaded.shape);
    return loaded;
  } catch (const Error& error) {
    if (!overrides.empty() && dynamic_cast<const UsageError*>(&error)) throw;
    fail("cannot use the frozen model ", printable(path), ": ", error.what());
  } catch (const Json::exception&) {
    fail("cannot use the frozen model ", printable(path), ": it does not say of which model it is; export it again");
  }
}

}  // namespace sparsight
