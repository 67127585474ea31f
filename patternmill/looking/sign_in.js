
"use strict";
// The secret is in the fragment, which no browser sends and no log has, or is given for a code. It is stored for this
// tab and port alone: a cookie would go to every port of the machine.
(() => {
  const KEPT = "patternmill";

  async function open(secret) {
    const answer = await fetch("/page", { headers: { authorization: `Bearer ${secret}` } });
    if (!answer.ok) throw new Error(answer.status);
    const page = await answer.text();
    sessionStorage.setItem(KEPT, secret);
    document.open();
    document.write(page);
    document.close();
  }

  function refuse() {
    const isAtHome = location.hostname === "127.0.0.1";
    document.getElementById("text").textContent = isAtHome ? "This link does not sign you in. `patternmill look` on a terminal shows one that does." : "Type the code that `patternmill look --host` shows. It works once, for five minutes.";
    document.getElementById("form").hidden = isAtHome;
  }

  document.getElementById("form").addEventListener("submit", async (event) => {
    event.preventDefault();
    const answer = await fetch("/code", { method: "POST", body: JSON.stringify({ code: document.getElementById("code").value }) });
    const { secret } = await answer.json();
    if (secret) return open(secret);
    document.getElementById("text").textContent = "That code is wrong or no longer valid: `patternmill look --host` shows a new one.";
  });
  addEventListener("hashchange", () => location.reload());
  const secret = location.hash.slice(1) || sessionStorage.getItem(KEPT);
  history.replaceState(null, "", "/");
  if (secret) open(secret).catch(refuse);
  else refuse();
})();
