#include "runtime/model.h"

#include <algorithm>

#include "runtime/image_pixels.h"
#include "sparsight/core/printable.h"
#include "sparsight/engine/file/frozen_file.h"
#include "sparsight/engine/file/pack_cache.h"
#include "sparsight/kernels/isa/isa.h"

namespace sparsight::runtime {
namespace {

std::vector<std::string> class_names(const engine::Program& program) {
  if (!program.info.classes.empty()) return printable_names(program.info.classes);
  std::vector<std::string> names;
  for (int64_t k = 0; k < program.classes(); ++k) names.push_back(std::to_string(k));
  return names;
}

// As sparsight_infer_info says it.
int64_t pack_cache(const engine::Program& program) {
  if (!program.packed) return 0;
  if (!program.packed->failure().empty()) return -1;
  return program.packed->wrote() ? 2 : program.packed->maps() ? 1 : 0;
}

}  // namespace

std::shared_ptr<const Model> read_model(std::shared_ptr<const engine::ByteSource> file, int64_t kept_experts,
                                        const std::string& packed_beside) {
  constexpr int64_t kAll = engine::ExpertMemory::kAll;  // read now; with one fewer, when they are chosen
  const engine::ExpertMemory memory{kept_experts == SPARSIGHT_INFER_ALL_EXPERTS ? kAll
                                                                                : std::min(kept_experts, kAll - 1)};
  std::string isa = active_isa();
  const engine::FrozenHeader header = engine::read_header(*file);
  engine::Program program = engine::read_program(std::move(file), header, memory, packed_beside);
  std::vector<std::string> classes = class_names(program);
  return std::make_shared<const Model>(Model{std::move(program), std::move(classes), std::move(isa)});
}

sparsight_infer_info model_info(const Model& model) {
  const engine::Program& program = model.program;
  return {.abi = SPARSIGHT_INFER_ABI,
          .channels = program.pixels().height,
          .height = program.pixels().width,
          .width = program.pixels().columns,
          .classes = program.classes(),
          .features = program.feature_width(),
          .decisions = std::ssize(program.routes()),
          .weight_bytes = program.bytes(),
          .run_bytes = program.bytes_per_image(),
          .independent_classes = program.info.sigmoid,
          .takes_images = program.info.preprocessing.has_value(),
          .decodes_images = decodes_image_files(),
          .instruction_set = model.instruction_set.c_str(),
          .pack_cache = pack_cache(program)};
}

}  // namespace sparsight::runtime
