/* Reports a visit of this page:
   <script src="https://hits.example/pagehits.js" data-asset="132141398" data-section="563"
           data-paid="free" async></script>
   A site that signs its visits adds data-visit and data-signature. */
(function () {
  "use strict";
  var tag = document.currentScript;
  var about = tag.dataset;
  var visitor = "";
  try {
    visitor = localStorage.getItem("pagehits");
    if (!visitor) {
      visitor = Math.random().toString(36).slice(2) + Date.now().toString(36);
      localStorage.setItem("pagehits", visitor);
    }
  } catch (error) {
    visitor = ""; /* The browser forbids storage: the visit counts without a visitor. */
  }
  var visit = {
    assetId: Number(about.asset),
    sectionId: Number(about.section || 0),
    paidType: about.paid || "free",
    visitor: visitor,
    url: location.href.slice(0, 2048)
  };
  if (about.signature) {
    visit.visitId = about.visit;
    visit.signature = about.signature;
  }
  var to = new URL("events", tag.src);
  if (!navigator.sendBeacon || !navigator.sendBeacon(to, JSON.stringify([visit]))) {
    fetch(to, { method: "POST", body: JSON.stringify([visit]), keepalive: true });
  }
})();
