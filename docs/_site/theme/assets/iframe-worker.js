/* Browsers start no worker in a page opened as a file. Run its script in a hidden frame instead. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.head.appendChild(this.frame)
      const inner = this.frame.contentWindow
      const load = address => new Promise((done, fail) => {
        const script = inner.document.createElement("script")
        script.src = address
        script.onload = done
        script.onerror = () => fail(new Error(`cannot load ${address}`))
        inner.document.head.appendChild(script)
      })
      inner.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      inner.importScripts = async (...addresses) => {
        for (const address of addresses) await load(address)
      }
      this.ready = load(new URL(url, document.baseURI).href)
    }
    postMessage(data) {
      const inner = this.frame.contentWindow
      this.ready.then(() => inner.dispatchEvent(new inner.MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
}
