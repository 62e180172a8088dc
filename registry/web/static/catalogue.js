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

const say = (text) => { document.getElementById("said").textContent = text; };

// A button that can do nothing is not shown: a clipboard is there only over HTTPS and on loopback.
if (navigator.clipboard) {
  for (const code of document.querySelectorAll(".md pre.code")) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "copy", hidden: true, textContent: "Copy" });
    button.setAttribute("aria-label", "Copy this code");
    code.append(button);
  }
  for (const button of document.querySelectorAll("button.copy")) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.previousElementSibling.textContent);
      button.textContent = "Copied";
      say("It is on the clipboard.");
      setTimeout(() => { button.textContent = "Copy"; say(""); }, 4000);
    });
  }
}

// Colours: as the system, light or dark.
const THEMES = { "": "as the system", light: "light", dark: "dark" };
const themeButton = document.querySelector("button.theme");
const showTheme = () => {
  themeButton.querySelector("span").textContent = THEMES[document.documentElement.dataset.theme ?? ""];
};
if (themeButton) {
  document.querySelector(".tools").hidden = false;
  showTheme();
  themeButton.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(document.documentElement.dataset.theme ?? "") + 1) % names.length];
    if (next) document.documentElement.dataset.theme = next;
    else delete document.documentElement.dataset.theme;
    try { localStorage.setItem("theme", next); } catch { /* it lasts for this page */ }
    showTheme();
    say(`Colours: ${THEMES[next]}`);
  });
}

// The keys, which "?" shows.
const help = () => {
  let dialog = document.querySelector("dialog.keys");
  if (dialog === null) {
    dialog = document.createElement("dialog");
    dialog.className = "keys";
    dialog.setAttribute("aria-label", "Keys");
    const list = document.createElement("dl");
    for (const [key, what] of [["/", "go to the search field"], ["↓ ↑", "move through the results"], ["Enter", "open the result"], ["?", "show these keys"], ["Esc", "close"]]) {
      const [name, about] = [document.createElement("dt"), document.createElement("dd")];
      name.append(Object.assign(document.createElement("kbd"), { textContent: key }));
      about.textContent = what;
      list.append(name, about);
    }
    const form = document.createElement("form");
    form.method = "dialog";
    form.append(Object.assign(document.createElement("button"), { textContent: "Close" }));
    dialog.append(list, form);
    document.body.append(dialog);
  }
  dialog.showModal();
};
document.querySelector("button.help")?.addEventListener("click", help);
document.addEventListener("keydown", (event) => {
  if (event.key === "?" && event.target instanceof Element && !isTyping(event.target) && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    help();
  }
});

// A search as you type that fails must not leave an older list as if it were the answer.
let latest = null;
const found = () => document.getElementById("found");
document.addEventListener("htmx:beforeRequest", (event) => {
  latest = event.detail.xhr;
  found()?.setAttribute("aria-busy", "true");
});
document.addEventListener("htmx:afterSwap", () => { document.body.classList.remove("stale"); });
document.addEventListener("htmx:afterRequest", (event) => {
  if (event.detail.xhr === latest) found()?.removeAttribute("aria-busy");
});
const failed = (event) => {
  const { xhr, pathInfo } = event.detail;
  if (xhr.status === 401) {
    location.assign(pathInfo.finalRequestPath); // the server answers with the sign-in page
    return;
  }
  setTimeout(() => { // a search that a newer search replaced has not failed
    if (xhr !== latest) return;
    const why = xhr.status ? `the server answered ${xhr.status}` : "no answer from the server";
    document.getElementById("count").textContent = `The search failed: ${why}. These are the results of an earlier search.`;
    document.body.classList.add("stale");
    found()?.removeAttribute("aria-busy");
  });
};
for (const name of ["responseError", "sendError", "sendAbort", "timeout"]) document.addEventListener(`htmx:${name}`, failed);

// A filter that you close stays closed.
const CLOSED = "closed-filters";
const closed = () => { try { return JSON.parse(localStorage.getItem(CLOSED)) ?? []; } catch { return []; } };
const close = () => {
  for (const one of document.querySelectorAll(".facet")) if (closed().includes(one.dataset.name)) one.open = false;
};
document.addEventListener("toggle", (event) => {
  const { name } = event.target.dataset ?? {};
  if (name === undefined) return;
  const others = closed().filter((one) => one !== name);
  try { localStorage.setItem(CLOSED, JSON.stringify(event.target.open ? others : [...others, name])); } catch { /* full, or forbidden */ }
}, true);
document.addEventListener("htmx:afterSwap", close);
close();

// The chosen skills stay chosen on other pages.
const BASKET = "chosen-skills";
const basket = () => { try { return JSON.parse(sessionStorage.getItem(BASKET)) ?? []; } catch { return []; } };
const fill = () => {
  const form = document.getElementById("chosen");
  if (form === null) return;
  const refs = basket();
  const boxes = new Map([...document.querySelectorAll(".choose:not([hidden])")].map((one) => [one.value, one]));
  for (const one of document.querySelectorAll(".choose[hidden]")) one.remove();
  for (const [ref, box] of boxes) box.checked = refs.includes(ref);
  for (const ref of refs) if (!boxes.has(ref)) {
    const box = document.createElement("input");
    Object.assign(box, { type: "checkbox", className: "choose", name: "ref", value: ref, checked: true, hidden: true });
    form.append(box);
  }
  form.querySelector(".chosen-count").textContent = `${refs.length} chosen:`;
  form.querySelector("button[type=reset]").hidden = false;
};
const keep = (refs) => {
  try { sessionStorage.setItem(BASKET, JSON.stringify(refs)); } catch { /* they are lost on the next page */ }
  fill();
  say(`${refs.length} chosen`);
};
document.addEventListener("change", ({ target }) => {
  if (!target.classList.contains("choose")) return;
  const others = basket().filter((one) => one !== target.value);
  keep(target.checked ? [...others, target.value] : others);
});
document.addEventListener("reset", (event) => {
  if (event.target.id !== "chosen") return;
  event.preventDefault();
  keep([]);
});
document.addEventListener("htmx:afterSwap", fill);
window.addEventListener("pageshow", fill);
