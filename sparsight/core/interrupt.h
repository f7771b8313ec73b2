// Ctrl-C: the first SIGINT or SIGTERM requests a clean stop, a second one ends the process at once (exit code 130).
#pragma once

namespace sparsight {

// Called once by the program. The library never changes signal handlers by itself.
void install_interrupt_handler();

// Whether a stop was requested. Loops check it between steps.
bool interrupted();

// Requests a stop (true) or clears the request (false).
void set_interrupted(bool value);

}  // namespace sparsight
