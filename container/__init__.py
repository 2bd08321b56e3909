"""What runs inside SageMaker: a Sanic server that remembers each session, in front of an inference engine."""
