// Serves a model until Ctrl-C or SIGTERM.
#pragma once

#include "sparsight/serve/http_server.h"

namespace sparsight::serve {

// Answers requests until interrupted() (core/interrupt.h), then finishes those that have arrived. Raises Error where it
// cannot listen.
void serve(ServedModel model, const ServiceOptions& service, const ListenOptions& listen);

}  // namespace sparsight::serve
