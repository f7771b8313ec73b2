// A frozen model in memory, shared by its handle and its sessions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "sparsight/engine/file/byte_source.h"
#include "sparsight/engine/program.h"
#include "sparsight/infer.h"

namespace sparsight::runtime {

struct Model {
  engine::Program program;
  std::vector<std::string> classes;  // printable, or numbers
  std::string instruction_set;
};

// Raises Error for what is not a frozen model that this library runs. kept_experts: of sparsight_infer_open().
// packed_beside: the path of a file that packed weights are kept beside, or "".
std::shared_ptr<const Model> read_model(std::shared_ptr<const engine::ByteSource> file, int64_t kept_experts,
                                        const std::string& packed_beside);

sparsight_infer_info model_info(const Model& model);

}  // namespace sparsight::runtime

struct sparsight_infer_model {
  std::shared_ptr<const sparsight::runtime::Model> model;
};
