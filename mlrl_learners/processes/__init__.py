"""Work sharing between several processes that train one learner."""
