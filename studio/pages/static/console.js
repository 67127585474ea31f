"use strict";
/* The key is kept for this tab and port, and sent as a header: a cookie would go to every port of the machine. */
(() => {
  const KEPT = "studio key";
  const key = () => sessionStorage.getItem(KEPT);

  async function show(address, how = {}) {
    const answer = await fetch(address, { ...how, headers: { Authorization: `Bearer ${key()}` } });
    if (answer.status === 401) sessionStorage.removeItem(KEPT);
    const text = await answer.text();
    history.replaceState(null, "", answer.url);
    document.open();
    document.write(text);
    document.close();
  }

  document.addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    const body = new URLSearchParams(new FormData(form));
    if (form.id === "logout") {
      sessionStorage.removeItem(KEPT);
      location.reload();
    } else if (form.id === "login") {
      sessionStorage.setItem(KEPT, body.get("key").trim());
      show(location.href);
    } else show(form.action, { method: "POST", body });
  });
  const login = document.getElementById("login");
  if (login && key()) show(location.href);
  else if (login) {
    login.hidden = false;
    login.elements.key.focus();
  }
})();
