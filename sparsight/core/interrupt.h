// Ctrl-C: the first SIGINT or SIGTERM asks loops to stop in good order, a second one ends the process at once (130).
#pragma once

namespace sparsight {

// Called once by the program. The library never changes signal handlers by itself.
void install_interrupt_handler();

// Whether a stop was asked for. Loops look at it between steps.
bool interrupted();

// Asks for a stop (true), or forgets that one was asked for (false).
void set_interrupted(bool value);

}  // namespace sparsight
