"use strict";
/* An embedded studio ends with its command: the page says so, instead of an error of the browser in its place. */
async function goOn(event, how) {
  event.preventDefault();
  const isThere = await fetch(location.href, { method: "HEAD" }).then(() => true, () => false);
  document.getElementById("gone").hidden = isThere;
  if (isThere) how();
}
for (const link of document.querySelectorAll("a.button")) link.addEventListener("click", (event) => goOn(event, () => location.assign(link.href)));
for (const form of document.forms) form.addEventListener("submit", (event) => goOn(event, () => form.submit()));
