#include "sparsight/serve/serve.h"

#include <thread>

#include "sparsight/core/interrupt.h"
#include "sparsight/core/log.h"
#include "sparsight/core/printable.h"

namespace sparsight::serve {
namespace {

bool is_local(const std::string& host) { return host == "localhost" || host == "::1" || host.starts_with("127."); }

}  // namespace

void serve(ServedModel model, const ServiceOptions& options, const ListenOptions& listen) {
  constexpr std::chrono::milliseconds kLook{50};
  const std::string name = model.name;
  Service service(std::move(model), options);
  const HttpServer server(service, listen);
  if (!is_local(listen.host) && options.token.empty())
    log_warning("anybody who reaches ", printable(listen.host), " may use the model; --token asks for a password");
  const bool bracketed = listen.host.find(':') != std::string::npos;
  log_info("serving ", name, " at http://", bracketed ? "[" : "", printable(listen.host), bracketed ? "]" : "", ":",
           server.port());
  while (!interrupted()) std::this_thread::sleep_for(kLook);
  log_info("stopping: requests that have arrived are answered");
}

}  // namespace sparsight::serve
