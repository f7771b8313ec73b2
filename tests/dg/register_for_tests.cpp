// The program of all tests knows the algorithms of domain generalisation, as sparsight::main() does.
#include "sparsight/dg/algorithms/register_domain_algorithms.h"

namespace sparsight {
namespace {

[[maybe_unused]] const bool registered = (register_domain_algorithms(algorithms()), true);

}  // namespace
}  // namespace sparsight
