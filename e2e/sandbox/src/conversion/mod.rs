//! Conversion of custom resources between versions, by strategy None or Webhook.
