document.documentElement.classList.add("scripted");

for (const tabs of document.querySelectorAll(".tabs")) {
  const list = tabs.querySelector(":scope > [role=tablist]");
  const buttons = [...list.querySelectorAll("[role=tab]")];
  const show = (chosen, focus) => {
    for (const button of buttons) {
      const isChosen = button === chosen;
      button.setAttribute("aria-selected", isChosen);
      button.tabIndex = isChosen ? 0 : -1;
      document.getElementById(button.getAttribute("aria-controls")).hidden = !isChosen;
    }
    if (focus) chosen.focus();
  };
  const steps = { ArrowRight: 1, ArrowLeft: -1 };
  list.addEventListener("click", (event) => {
    const button = event.target.closest("[role=tab]");
    if (button) show(button, false);
  });
  list.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (!step) return;
    const next = buttons.indexOf(document.activeElement) + step + buttons.length;
    show(buttons[next % buttons.length], true);
    event.preventDefault();
  });
  show(buttons[0], false);
}

// Drawings that are a little too wide are shown whole, wider ones at their size, to be scrolled.
const READABLE = 0.6;
for (const figure of document.querySelectorAll("figure.diagram")) {
  const button = figure.querySelector("button");
  const frame = figure.querySelector(".frame");
  const width = Number(figure.querySelector("svg").getAttribute("width"));
  let isMeasured = false;
  const set = (isWhole) => {
    frame.classList.toggle("whole", isWhole);
    button.textContent = isWhole ? "Actual size" : "Fit to width";
  };
  new ResizeObserver(() => {
    if (!frame.clientWidth) return;
    button.hidden = width <= frame.clientWidth;
    if (!isMeasured) set(!button.hidden && frame.clientWidth / width >= READABLE);
    isMeasured = true;
  }).observe(frame);
  button.addEventListener("click", () => set(!frame.classList.contains("whole")));
}

addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details")) details.open = true;
});
