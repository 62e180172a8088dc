// What a keyboard and a clipboard add to the pages, all of which work without it.
"use strict";

const isTyping = (place) => place.closest("input, textarea, select, [contenteditable]") !== null;

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !(event.target instanceof Element)) return;
  const field = document.getElementById("q");
  if (event.key === "/" && field !== null && !isTyping(event.target)) {
    event.preventDefault();
    field.focus();
    field.select();
    return;
  }
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  const names = [...document.querySelectorAll(".hits .name")];
  const place = names.indexOf(document.activeElement);
  if (step === undefined || names.length === 0) return;
  if (place < 0 && (event.target !== field || step < 0)) return;
  event.preventDefault();
  if (place + step < 0) field.focus();
  else names[Math.min(place + step, names.length - 1)].focus();
});

// A button that can do nothing is not shown: a clipboard is there only over HTTPS and on loopback.
if (navigator.clipboard) {
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "Copied";
    });
  }
}
