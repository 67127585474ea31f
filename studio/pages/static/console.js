"use strict";
/* The session is kept for this tab and port, and sent as a header: a cookie would go to every port of the machine. */
(() => {
  const KEPT = "studio session";
  const session = () => sessionStorage.getItem(KEPT);

  function write(text) {
    document.open();
    document.write(text);
    document.close();
  }

  async function show(address, how = {}) {
    const answer = await fetch(address, { ...how, headers: { "Studio-Session": session() } });
    if (answer.status === 401) sessionStorage.removeItem(KEPT);
    const text = await answer.text();
    history.replaceState(null, "", answer.url);
    write(text);
  }

  async function logIn(form, body) {
    const answer = await fetch(form.action, { method: "POST", body });
    const text = await answer.text();
    if (!answer.ok) return write(text);
    sessionStorage.setItem(KEPT, text);
    return show(location.href);
  }

  document.addEventListener("submit", (event) => {
    event.preventDefault();
    const form = event.target;
    const body = new URLSearchParams(new FormData(form));
    return form.id === "login" ? logIn(form, body) : show(form.action, { method: "POST", body });
  });
  const login = document.getElementById("login");
  if (login && session()) show(location.href);
  else if (login) login.hidden = false;
})();
