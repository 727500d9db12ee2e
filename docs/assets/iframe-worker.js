/* The search runs in a worker, which browsers refuse to pages opened from disk. There, run its script in a hidden frame. */
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.documentElement.append(this.frame);
      const inside = this.frame.contentWindow;
      const script = inside.document.createElement("script");
      this.ready = new Promise((resolve, reject) => Object.assign(script, { onload: resolve, onerror: reject }));
      this.ready.catch((event) => this.onerror?.(event));
      script.src = new URL(url, location.href).href;
      inside.document.head.append(script);
      inside.postMessage = (data) => setTimeout(() => this.onmessage?.({ data: structuredClone(data) }));
    }

    postMessage(data) {
      const inside = this.frame.contentWindow;
      const copy = inside.structuredClone(data);
      this.ready.then(() => setTimeout(() => inside.onmessage?.({ data: copy })));
    }

    terminate() {
      this.frame.remove();
    }
  };
}
