// Where random search samples a hyper-parameter from, as text: "10^U(-5,-3.5)", "floor(2^U(3,5.5))", "U(0,0.5)",
// "{0,0.1,0.5}". Samples are bit for bit those of DomainBed's expressions in NumPy, such as
// int(2**random_state.uniform(3, 5.5)) and random_state.choice([0, 0.1, 0.5]).
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "sparsight/data/domainbed/numpy_random.h"

namespace sparsight {

// Numbers are integers where the range says floor() or has only integers in its braces. Raises Error for other text.
nlohmann::ordered_json sample_range(const std::string& range, NumpyRandom& random);

}  // namespace sparsight
