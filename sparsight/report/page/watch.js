// Collects all errors on the page, to show them to the reader and to tests.
(function () {
  "use strict";
  const problems = [];
  function note(text) {
    problems.push(String(text));
    const box = document.getElementById("problems");
    if (box) {
      box.hidden = false;
      box.querySelector("pre").textContent = problems.join("\n");
    }
  }
  window.sparsightProblem = note;
  window.addEventListener("error", (event) => note(event.message || "a resource could not be loaded"));
  window.addEventListener("unhandledrejection", (event) => note(event.reason));
  document.addEventListener("securitypolicyviolation", (event) => note("blocked: " + event.blockedURI));
  for (const level of ["error", "warn"]) {
    const original = console[level].bind(console);
    console[level] = (...parts) => {
      note(parts.join(" "));
      original(...parts);
    };
  }
})();
