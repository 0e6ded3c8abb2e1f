// Browsers give pages that are opened from a folder no workers, in which the site's search runs. Here such a page gets
// one that is a hidden frame: what is posted to it, its scripts hear as a worker's would, and the other way round.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.onmessage = null
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      inside.document.open() // or Firefox would put another document in its place later
      inside.document.write("<body></body>")
      inside.document.close()
      const say = (target, data) => setTimeout(() => {
        const event = new MessageEvent("message", { data })
        target.dispatchEvent(event)
        if (target === this && this.onmessage) this.onmessage(event)
      })
      const load = source => new Promise(done => {
        const script = inside.document.createElement("script")
        script.src = source
        script.onload = script.onerror = done
        inside.document.body.append(script)
      })
      inside.postMessage = data => say(this, data)
      inside.importScripts = (...urls) => urls.reduce((before, each) => before.then(() => load(each)), Promise.resolve())
      this.ready = load(new URL(url, location.href).href)
      this.postMessage = data => this.ready.then(() => say(inside, data))
    }
    terminate() { this.frame.remove() }
  }
}
