// The sparsight program with an additional router: my_sparsight train glyphs.toml --out runs/my_router, and all other
// verbs.
#include <sparsight/cli/main.h>
#include <sparsight/moe/losses/routing_loss.h>
#include <sparsight/moe/register_moe.h>

#include <torch/types.h>

#include "nearest_centre.h"

using namespace sparsight;

// Registers the names for configurations, --help strings and error messages.
static void register_mine() {
  routers().add<NearestCentreOptions>("nearest_centre", "the experts whose centres are nearest to the token",
                                      [](const NearestCentreOptions& options, RouterShape shape) {
                                        return std::make_shared<NearestCentreRouter>(options, shape);
                                      });
  // A loss for any router: --set losses.confidence=0.01 sets its weight.
  add_routing_loss(
      {"confidence", "1 minus the mean gate of first choices", [](const Routing& routing, const LossVariants&) {
         return 1 - routing.gate.masked_select(routing.rank == 0).mean();
       }});
}

int main(int argc, char** argv) { return sparsight::main(argc, argv, register_mine); }
